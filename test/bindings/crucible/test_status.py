"""What is reported of a job, and that no change of backend is missed."""

import unittest

from crucible.status import Changes, status_of


def attempt(number, kind, **more):
    return {
        "number": number,
        "backend": "local",
        "capacityType": kind,
        "realised": None,
        "state": "running",
        "reason": "training",
        "costMicroUsd": 5,
        **more,
    }


def shown(*kinds, state="running", **more):
    """A document of a job whose attempts had these capacity types."""
    attempts = [attempt(number, kind) for number, kind in enumerate(kinds, start=1)]
    return {
        "id": "job-1",
        "name": "<script>",
        "owner": "o",
        "state": state,
        "reason": "training",
        "message": "<script>alert(1)</script>",
        "submittedAtMs": 0,
        "progress": None,
        "cost": {"spentMicroUsd": 1234567},
        "placement": {"backend": "local", "capacityType": kinds[-1], "realised": None} if kinds else None,
        "attemptsTotal": len(kinds),
        "attempts": attempts,
        **more,
    }


def seen(*documents):
    changes = Changes()
    return [(one.attempt, one.backend, one.previous_backend) for each in documents for one in changes.of(each)]


class TestLine(unittest.TestCase):
    def test_a_waiting_job_has_its_place_in_the_line_with_its_message_also_in_a_list(self):
        place = {"position": 2, "pool": "any backend"}
        waiting = shown(state="pending", waiting=place, message="Queue: waiting, 2nd for any backend.")
        self.assertEqual((2, "any backend"), (status_of(waiting).waiting.position, status_of(waiting).waiting.pool))
        self.assertIn("2nd for any backend", str(status_of(waiting)))
        self.assertIsNone(status_of(shown("spot", waiting=None)).waiting)

    def test_a_machine_that_tries_again_says_what_and_in_which_phase(self):
        trying = status_of(shown("spot", phase="fetching", retrying={"text": "HTTP 503 of the input", "sinceMs": 7}))
        self.assertEqual(("fetching", "HTTP 503 of the input"), (trying.phase, trying.retrying))
        silent = status_of(shown("spot", phase=None, retrying=None))
        self.assertEqual((None, None), (silent.phase, silent.retrying))


class TestChanges(unittest.TestCase):
    def test_a_first_place_is_no_change(self):
        self.assertEqual([(0, None, None), (1, "local:spot", None)], seen(shown(), shown("spot")))

    def test_a_move_is_reported_once(self):
        self.assertEqual(
            [(1, "local:spot", None), (2, "local:on-demand", "local:spot"), (2, "local:on-demand", None)],
            seen(shown("spot"), shown("spot", "on-demand"), shown("spot", "on-demand", state="succeeded")),
        )

    def test_a_new_machine_of_the_same_backend_is_no_change(self):
        self.assertEqual([(1, "local:spot", None), (2, "local:spot", None)], seen(shown("spot"), shown("spot", "spot")))

    def test_a_move_and_the_return_from_it_between_two_updates_are_both_reported(self):
        self.assertEqual(
            [(1, "local:spot", None), (2, "local:on-demand", "local:spot"), (3, "local:spot", "local:on-demand")],
            seen(shown("spot"), shown("spot", "on-demand", "spot")),
        )

    def test_moves_before_the_first_update_are_reported(self):
        self.assertEqual([(2, "local:on-demand", "local:spot")], seen(shown("spot", "on-demand"))[:1])

    def test_the_machine_that_was_launched_counts(self):
        document = shown("spot")
        document["placement"]["realised"] = {"capacityType": "on-demand", "type": "t", "place": "p", "priceMicroUsdPerHour": 1}
        self.assertEqual([(1, "local:on-demand", None)], seen(document))


class TestStatus(unittest.TestCase):
    def test_money_is_exact_and_in_dollars(self):
        status = status_of(shown("spot"))
        self.assertEqual((1234567, 1.234567), (status.cost_micro_usd, status.cost))

    def test_progress_is_a_number_always_and_done_when_done(self):
        self.assertEqual(0.0, status_of(shown()).progress)
        self.assertEqual(100.0, status_of(shown("spot", state="succeeded")).progress)
        self.assertEqual(32.0, status_of(shown("spot", progress={"percent": 32, "step": 480})).progress)

    def test_unknown_progress_and_attempts_are_never_shown_as_zero(self):
        waiting = status_of(shown())
        self.assertIsNone(waiting.percent)
        self.assertIn("progress unknown", str(waiting))
        self.assertEqual(0, waiting.attempt)
        self.assertIsNone(status_of(shown(attemptsTotal=None)).attempt)

    def test_entries_of_lists_have_less(self):
        document = shown("spot")
        for name in ("attempts", "message"):
            del document[name]
        status = status_of(document)
        self.assertEqual(("", ()), (status.message, status.attempts))
