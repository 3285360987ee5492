"""Tables for notebooks."""

from __future__ import annotations

import html
from typing import Any, Mapping, Sequence

#: Rows that a notebook shows; the list has all.
ROWS_MAX = 100


def table(rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = (), title: str = "") -> str:
    """An HTML table of the columns that have a value in some row, with a title and notes."""
    # Reservations of both kinds in one list have different columns.
    all_names = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in all_names if any(_shown(row.get(name)) for row in rows)]
    head = "".join("<th>%s</th>" % html.escape(name.replace("_", " ")) for name in names)
    body = "".join(
        "<tr>%s</tr>" % "".join("<td>%s</td>" % html.escape(_shown(row.get(name))) for name in names)
        for row in rows[:ROWS_MAX]
    )
    parts = ["<p><b>%s</b></p>" % html.escape(title)] if title else []
    parts.append("<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>" % (head, body) if rows else "<p>Nothing found.</p>")
    if len(rows) > ROWS_MAX:
        parts.append("<p>%d more rows</p>" % (len(rows) - ROWS_MAX))
    parts.extend("<p><small>%s</small></p>" % html.escape(note) for note in notes)
    return "<div>%s</div>" % "".join(parts)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(one) for one in value)
    if isinstance(value, dict):
        return ", ".join("%s=%s" % (name, _shown(one)) for name, one in value.items())
    return str(value)
