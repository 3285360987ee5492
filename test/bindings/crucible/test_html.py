"""Views for notebooks: whatever a job is called or prints stays text."""

import unittest
from dataclasses import replace

from crucible import html
from crucible.plans import plan_of
from crucible.records import LogLine
from crucible.status import status_of
from truffle.html import ROWS_MAX, table
from test_status import shown

SCRIPT = "<script>alert(1)</script>"


def planned(**more):
    offer = {
        "backend": "ec2",
        "capacityType": "spot",
        "type": SCRIPT,
        "place": "us-east-1a",
        "shape": {},
        "availability": "unknown",
        "priceMicroUsdPerHour": 1000000,
    }
    forecast = {
        "cost": {"lowMicroUsd": 1000000, "highMicroUsd": 3000000},
        "finish": {"lowMs": 3600000, "highMs": 7200000},
        "interruptions": 0.4,
        "chances": {"budget": 0.9},
    }
    place = {"offer": offer, "costMicroUsd": 2000000, "durationMs": 5400000, "forecast": forecast, "reasons": [SCRIPT], "risks": []}
    rest = {"relaxations": [], "warnings": [], "inferred": [], "isDurationAssumed": False, "silentBackends": []}
    return plan_of({"placements": [place], "rejections": [], **rest, **more})


class TestHtml(unittest.TestCase):
    def test_a_plan_warns_of_every_note(self):
        plan = planned(warnings=["No checkpoint."], notes=["An A100 is assumed."])
        self.assertEqual(plan.warnings, ("No checkpoint.", "An A100 is assumed."))
        self.assertIn("An A100 is assumed.", html.plan(plan))
        self.assertEqual(planned().warnings, ())

    def test_no_view_has_markup_of_a_job(self):
        last = {"id": "i", "step": 5, "attempt": 1}
        status = status_of(
            shown(
                "spot",
                "on-demand",
                warning={"text": SCRIPT},
                trouble={"message": SCRIPT},
                continuation={"command": SCRIPT, "step": 1},
                checkpoints={"newest": last, "state": "complete", "count": 1},
                progress={"step": 3, "stepsTotal": 10, "loss": 2.5, "percent": 30},
            )
        )
        nothing = {"code": "gpus", "why": "unfit", "reason": SCRIPT, "count": 1, "offerKeys": []}
        views = [
            html.card(status),
            html.jobs([status]),
            html.log([LogLine(1, 1, 0, "out", SCRIPT)]),
            html.plan(planned(warnings=[SCRIPT])),
            html.plan(planned(placements=[], rejections=[nothing])),
        ]
        for view in views:
            self.assertNotIn("<script", view)
            self.assertIn("&lt;script&gt;", view)
        self.assertIn("not responding", html.card(replace(status, is_live=False)))
        for text in ("step 3 of 10", "loss 2.5", "30 %", "$1.23", "local:spot → local:on-demand", "step 5, 1 kept"):
            self.assertIn(text, views[0])

    def test_a_plan_has_costs_and_ranges(self):
        plan = planned()
        self.assertIn("$1.00 to $3.00", html.plan(plan))
        self.assertIn("1 h 30 min", html.plan(plan))
        (first,) = plan
        self.assertEqual((1, "ec2:spot", 2.0, 2000000, 0.9), (first.rank, first.backend, first.cost.median, first.cost_micro_usd, first.budget_chance))
        self.assertEqual((first.reasons, first.risks), (first.pros, first.cons))

    def test_no_place_says_why(self):
        nothing = {"code": "gpus", "why": "unfit", "reason": "8 GPUs", "count": 1, "offerKeys": []}
        empty = planned(placements=[], rejections=[nothing])
        self.assertEqual(0, len(empty))
        self.assertIn("8 GPUs", str(empty))
        self.assertIn("No place fits", html.plan(empty))


class TestTables(unittest.TestCase):
    def test_every_text_of_a_table_stays_text(self):
        rows = [{SCRIPT: 1, "type": SCRIPT, "zones": [SCRIPT], "more": {"x": SCRIPT}, "empty": None}]
        shown = table(rows, notes=[SCRIPT], title=SCRIPT)
        self.assertNotIn("<script", shown)
        self.assertEqual(6, shown.count("&lt;script&gt;"))
        self.assertNotIn("empty", shown)

    def test_a_long_table_shows_its_beginning_and_counts_the_rest(self):
        for count, rest in ((ROWS_MAX, ""), (ROWS_MAX + 2, "<p>2 more rows</p>")):
            shown = table([{"n": number} for number in range(count)])
            self.assertEqual((ROWS_MAX, rest), (shown.count("<td>"), "".join(shown.split("</table>")[1:]).replace("</div>", "")))
