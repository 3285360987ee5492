"""Views for notebooks. Every text is escaped: names, logs and messages come from jobs."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence

from .plain import plain

if TYPE_CHECKING:
    from .plans import Plan
    from .records import LogLine
    from .status import Status

_CARD = (
    "font-family:sans-serif;border:1px solid #8884;border-radius:6px;padding:10px 14px;max-width:48em;line-height:1.5;font-size:13px"
)
_COLOURS = {
    "running": "#1a7f37",
    "succeeded": "#1a7f37",
    "failed": "#cf222e",
    "cancelled": "#6e7781",
    "recovering": "#9a6700",
    "stopping": "#9a6700",
}
#: Shown for a status that comes from the record.
NOT_LIVE = "The workflow is not responding; this is the last recorded state."

LIVE_AGAIN = "The workflow responds again."

#: Shown for an unknown state.
UNKNOWN = "unknown"

#: Recommendations that the table shows: more than a person compares.
ROWS_MAX = 10

_OTHER_COLOUR = "#0969da"


def text(value: Any) -> str:
    """Text as HTML; a dash for None."""
    return "–" if value is None or value == "" else html.escape(plain(str(value)))


def usd(value: Optional[float]) -> str:
    """Dollars with cents; amounts below a cent with more digits."""
    if value is None:
        return "–"
    return "$%.2f" % value if value == 0 or value >= 0.01 else "$%.4f" % value


def percent(value: Optional[float]) -> str:
    """``32 %``, or that the progress is unknown."""
    return "progress unknown" if value is None else "%.4g %%" % value


def hours(value: float) -> str:
    """``1 h 5 min``, or seconds for less than two minutes."""
    seconds = round(value * 3600)
    if seconds < 120:
        return "%d s" % seconds
    minutes = round(seconds / 60)
    return "%d min" % minutes if minutes < 60 else "%d h %d min" % divmod(minutes, 60)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    cells = "".join("<th style='text-align:left'>%s</th>" % text(one) for one in head)
    lines = "".join("<tr>%s</tr>" % "".join("<td style='text-align:left'>%s</td>" % one for one in row) for row in rows)
    return "<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>" % (cells, lines)


def plan(plan: Plan) -> str:
    """The table of recommendations, or why it is empty."""
    remarks = [one.sentence for one in plan.relaxations] + list(plan.warnings)
    if not len(plan):
        remarks = ["%s: %s" % (one.code, one.reason) for one in plan.rejections] + remarks
    notes = "".join("<li>%s</li>" % text(one) for one in remarks)
    below = "<ul>%s</ul>" % notes if notes else ""
    if not len(plan):
        return "<div><b>No place fits this job now.</b>%s</div>" % below
    head = ("#", "backend", "machine", "place", "$/h", "cost", "90 % range", "time", "why", "risks")
    rows = [
        (
            str(one.rank),
            text(one.backend),
            text(one.type),
            text(one.place),
            usd(one.price_per_hour),
            usd(one.cost.median),
            "%s to %s" % (usd(one.cost.low), usd(one.cost.high)),
            hours(one.hours.median),
            text("; ".join(one.reasons)),
            text("; ".join(one.risks)),
        )
        for one in plan[:ROWS_MAX]
    ]
    left = len(plan) - len(rows)
    if left > 0:
        below = "<p>And %d more.</p>" % left + below
    return "<div>%s%s</div>" % (table(head, rows), below)


def bar(percent: float) -> str:
    """A progress bar."""
    width = max(0.0, min(100.0, percent))
    inner = "<div style='background:%s;height:8px;border-radius:4px;width:%.1f%%'></div>" % (_COLOURS["running"], width)
    return "<div style='background:#8883;border-radius:4px;margin:6px 0'>%s</div>" % inner


def card(status: Status) -> str:
    """A job: state, progress, cost, place, checkpoints, trouble."""
    steps = ""
    if status.training is not None and status.training.step is not None:
        total = status.training.steps_total
        steps = " · step %g%s" % (status.training.step, "" if total is None else " of %g" % total)
        if status.training.loss is not None:
            steps += " · loss %g" % status.training.loss
    money = usd(status.cost)
    if status.costs.estimated_remaining is not None:
        money += ", about %s to go" % usd(status.costs.estimated_remaining)
    if status.costs.budget is not None:
        money += ", budget %s" % usd(status.costs.budget)
    place = status.backend
    if place is not None and status.machine is not None:
        place += " (%s)" % ", ".join(one for one in (status.machine.type, status.machine.place) if one)
    facts = [("cost", money), ("backend", place)]
    if status.attempt is not None and status.attempt > 1:
        facts.append(("attempt", "%d: %s" % (status.attempt, " → ".join(one.backend for one in status.attempts[-5:]))))
    newest = status.checkpoints.newest
    if newest is not None:
        facts.append(("checkpoint", "step %d, %d kept" % (newest.step, status.checkpoints.count)))
    if not status.is_live:
        facts.append(("note", NOT_LIVE))
    facts += [(name, value) for name, value in (("trouble", status.trouble), ("warning", status.warning)) if value]
    if status.continuation is not None:
        facts.append(("continue", status.continuation.command))
    rows = "".join(
        "<div><span style='opacity:.6;display:inline-block;min-width:7em'>%s</span>%s</div>" % (text(name), text(value)) for name, value in facts
    )
    return (
        "<div style='%s'><b>%s</b> <code>%s</code> <b style='color:%s'>%s</b> <span style='opacity:.7'>%s</span>"
        "%s<div>%s%s</div><div>%s</div>%s</div>"
    ) % (
        _CARD,
        text(status.name),
        text(status.id),
        _COLOURS.get(status.state or "", _OTHER_COLOUR),
        text(status.state or UNKNOWN),
        text(status.reason),
        bar(status.progress),
        text(percent(status.percent)),
        text(steps) if steps else "",
        text(status.message),
        rows,
    )


def jobs(statuses: Sequence[Status]) -> str:
    """The list of jobs."""
    if not statuses:
        return "<div>No jobs.</div>"
    rows = [
        (
            text(one.id),
            text(one.name),
            "<span style='color:%s'>%s</span>" % (_COLOURS.get(one.state or "", _OTHER_COLOUR), text(one.state or UNKNOWN)),
            percent(one.percent),
            usd(one.cost),
            text(one.backend),
            text(one.owner),
        )
        for one in statuses
    ]
    return table(("id", "name", "state", "progress", "cost", "backend", "owner"), rows)


def log(lines: Sequence[LogLine]) -> str:
    """Log lines."""
    body = "\n".join(html.escape(str(line)) for line in lines)
    return "<pre style='max-height:30em;overflow:auto'>%s</pre>" % body
