import contextlib
import io
import os
import unittest
from unittest import mock

from support import FakeClock, FolderTest, paid_for

from crucible_runner.control.beats import Beats, seq_of
from crucible_runner.documents import BEAT, dump, parse
from crucible_runner.store.file_store import FileStore
from crucible_runner.keys import CheckpointId, Keys, parse_checkpoint_id, parse_range, stored_at
from crucible_runner.control.lease import Lease
from crucible_runner.dates import Dates
from crucible_runner.control.limits import Limits, Spent
from crucible_runner.control.phases import Phases
from crucible_runner.retries import Retries
from crucible_runner.store.retry import GaveUp, Pauses, Refused, Trouble, persist
from crucible_runner.control.stop import Stop
from crucible_runner.store.base import StoreError, StoreRefused
from crucible_runner.control.watch import Watch

NONE = {"seq": 0, "deadlineAtMs": None, "budget": None}
FACTS = {
    "attemptId": "job-a-1",
    "phase": "running",
    "progress": None,
    "gpus": [],
    "checkpoint": None,
    "restoredFrom": None,
    "limitsSeq": 0,
    "leaseSeq": 0,
    "logLines": 0,
    "clockMs": 1,
    "uptimeMs": 2,
}


class ControlTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.clock = FakeClock()
        self.store = FileStore(self.folder)
        self.keys = Keys("job-a", 1)
        self.lease = Lease(self.clock.mono_ms() + 1_000)
        dates = Dates(self.clock)
        self.limits = Limits(NONE, Spent(self.clock.mono_ms(), 0), dates)
        self.stop = Stop(self.clock, {"drainMs": 500, "powerOffMs": 100}, self.limits, self.lease, dates)
        self.remarks = []
        self.moves = []


class WatchTest(ControlTest):
    def setUp(self):
        super().setUp()
        self.watch = Watch(self.store, self.keys, self.remarks.append, self.store.take_grant)
        self.watch.begin(
            self.stop,
            self.lease,
            self.limits,
            lambda: self.moves.append((self.lease.lapses_at_ms, self.limits.seq)),
        )

    def test_obeys_lease_and_limits(self):
        self.lease.sent(3, self.clock.mono_ms())
        self.store.put(self.keys.lease, dump({"seq": 9, "answersBeat": 3, "ttlMs": 60_000}))
        self.store.put(self.keys.limits + "000001.json", dump(dict(NONE, seq=1, budget=paid_for(5_000))))
        self.store.put(self.keys.limits + "000010.json", dump(dict(NONE, seq=10, budget=paid_for(90_000))))
        self.watch.poll()
        self.watch.poll()
        lapses_at_ms = self.clock.mono_ms() + 60_000
        self.assertEqual(self.moves, [(lapses_at_ms, 0), (lapses_at_ms, 10)])
        self.assertEqual((self.lease.seq, self.limits.seq), (9, 10))
        self.assertIsNone(self.stop.poll())

    def test_a_lease_may_move_the_end_of_the_reservation(self):
        self.lease.sent(3, self.clock.mono_ms())
        lease = {"seq": 1, "answersBeat": 3, "ttlMs": 900_000, "usableUntilMs": self.clock.wall_ms() + 60_000}
        self.store.put(self.keys.lease, dump(lease))
        self.watch.poll()
        self.assertIsNone(self.stop.poll())
        self.clock.advance(30_000)
        self.assertEqual(self.stop.poll().reason, "expired")

    def test_counts_what_is_spent_from_the_beat_that_the_lease_answers(self):
        self.limits.obey(dict(NONE, seq=1, budget=paid_for(100_000)))
        sent_ms = self.clock.mono_ms() + 10_000
        self.lease.sent(3, sent_ms)
        lease = {"seq": 1, "answersBeat": 3, "ttlMs": 0, "spentMicroUsd": 4}
        self.store.put(self.keys.lease, dump(lease))
        self.watch.poll()
        self.watch.poll()
        self.assertEqual(self.limits.hard_stop(), (sent_ms + 96_000, "budget"))
        self.assertEqual(len(self.moves), 1)
        self.store.put(self.keys.lease, dump(dict(lease, answersBeat=99, spentMicroUsd=0)))
        self.watch.poll()
        self.assertEqual(self.limits.hard_stop(), (sent_ms + 96_000, "budget"))

    def test_what_cannot_be_understood_is_ignored_and_said_once(self):
        self.store.put(self.keys.lease, b'{"seq": 1}')
        for _ in range(3):
            self.watch.poll()
        self.assertEqual(len(self.remarks), 1)
        self.assertIn("answersBeat is missing", self.remarks[0])
        self.assertIsNone(self.stop.poll())

    def test_a_drain_stops_whatever_it_says(self):
        self.store.put(self.keys.drain, b"{")
        self.watch.poll()
        self.assertEqual(self.stop.poll().reason, "superseded")

    def test_a_rehearsal_plays_the_notice_of_a_provider(self):
        self.store.put(self.keys.drain, dump({"reason": "interrupted", "windowMs": 400, "requestedAtMs": 1}))
        self.watch.poll()
        self.assertEqual(self.stop.poll().reason, "interrupted")

    def test_a_later_window_of_a_drain_only_makes_it_shorter(self):
        drain = {"reason": "migrated", "windowMs": 400, "requestedAtMs": 1}
        self.store.put(self.keys.drain, dump(drain))
        self.watch.poll()
        first = self.stop.poll()
        self.clock.advance(10)
        self.store.put(self.keys.shorter_drains + "000002.json", dump(dict(drain, windowMs=20)))
        self.watch.poll()
        self.assertEqual(self.stop.poll(), (first.reason, first.began_at_ms, first.began_at_ms + 30))
        self.store.put(self.keys.shorter_drains + "000003.json", dump(dict(drain, windowMs=300)))
        self.watch.poll()
        self.watch.poll()
        self.assertEqual(self.stop.poll().window_end_ms, first.began_at_ms + 30)
        self.assertEqual(len(self.remarks), 2)

    def test_the_newest_window_is_read_where_several_were_missed(self):
        drain = {"reason": "cancelled", "windowMs": 400, "requestedAtMs": 1}
        self.store.put(self.keys.drain, dump(drain))
        for seq, window_ms in ((2, 300), (3, 50)):
            self.store.put(self.keys.shorter_drains + "%06d.json" % seq, dump(dict(drain, windowMs=window_ms)))
        self.watch.poll()
        now_ms = self.clock.mono_ms()
        self.assertEqual(self.stop.poll(), ("cancelled", now_ms, now_ms + 50))


class BeatsTest(ControlTest):
    def test_numbers_go_on_and_the_moment_before_sending_counts(self):
        beats = Beats(self.store, self.keys, self.lease, self.clock)
        beats.go_on_after(seq_of(dump(dict(FACTS, seq=41))))
        before_ms = self.clock.mono_ms()
        put = self.store.put

        def slowly(key, body):
            self.clock.advance(700)
            put(key, body)

        self.store.put = slowly
        beats._send(FACTS)
        self.assertEqual(parse(BEAT, self.store.get(self.keys.beat))["seq"], 42)
        self.assertTrue(self.lease.renew({"seq": 1, "answersBeat": 42, "ttlMs": 60_000}))
        self.assertEqual(self.lease.lapses_at_ms, before_ms + 60_000)

    def test_a_beat_of_which_nobody_knows_whether_it_arrived_may_be_answered(self):
        beats = Beats(self.store, self.keys, self.lease, self.clock)
        self.store.put = mock.Mock(side_effect=StoreError("timeout"))
        self.assertRaises(StoreError, beats._send, FACTS)
        self.assertTrue(self.lease.renew({"seq": 1, "answersBeat": 1, "ttlMs": 60_000}))


class RetryTest(unittest.TestCase):
    def setUp(self):
        patcher = mock.patch("crucible_runner.store.retry._FIRST_PAUSE_SECONDS", 0.001)
        patcher.start()
        self.addCleanup(patcher.stop)
        self.clock = FakeClock()
        self.remarks = []
        self.trouble = Trouble("putting it", self.remarks.append, self.clock)

    def fails(self, times):
        def action():
            self.clock.advance(500)
            if times:
                raise StoreError(times.pop())
            return "done"

        return action

    def test_goes_on_until_it_works_and_says_so_once(self):
        result = persist(self.fails(["c", "b", "a"]), lambda: False, self.trouble)
        self.assertEqual(result, "done")
        self.assertEqual(
            self.remarks, ["putting it does not work, trying again: a", "putting it works again after 1 s"]
        )

    def test_tells_the_output_of_the_machine_too_which_may_be_closed(self):
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            self.trouble.happened(StoreError("refused"))
        self.assertEqual(output.getvalue(), "putting it does not work, trying again: refused\n")
        self.trouble.passed()
        output.close()
        with contextlib.redirect_stderr(output):
            self.trouble.happened(StoreError("refused"))
        self.assertEqual(len(self.remarks), 3)

    def test_tells_beats_what_has_failed_for_ten_seconds_and_is_tried_again(self):
        retries = Retries(self.clock)
        with mock.patch("crucible_runner.store.retry.RETRIES", retries):
            for turn in range(3):
                self.trouble.happened(StoreError("503"))
                self.assertIs(retries.document() is not None, turn == 2)
                self.clock.advance(5_000)
            began_ms = self.clock.wall_ms() - 15_000
            self.assertEqual(retries.document(), {"text": "putting it does not work: 503", "sinceMs": began_ms})
            self.trouble.passed()
            self.assertIsNone(retries.document())
            self.assertRaises(GaveUp, persist, self.refuses([StoreError] * 3), lambda: True, self.trouble)
            self.assertRaises(OSError, persist, mock.Mock(side_effect=OSError("disk")), lambda: False, self.trouble)
            self.clock.advance(60_000)
            self.assertIsNone(retries.document())

    def refuses(self, kinds):
        """Fails with these errors, one each twenty seconds."""

        def action():
            self.clock.advance(20_000)
            if kinds:
                raise kinds.pop(0)("403 AccessDenied")
            return "done"

        return action

    def test_a_store_that_only_refuses_is_given_up_at_the_start(self):
        at_start = Trouble("reading the order", self.remarks.append, self.clock, is_start=True)
        with self.assertRaisesRegex(Refused, "AccessDenied"):
            persist(self.refuses([StoreRefused] * 9), lambda: False, at_start)
        self.assertEqual(persist(self.refuses([StoreRefused, StoreError] * 4), lambda: False, at_start), "done")
        self.assertEqual(persist(self.refuses([StoreError] * 9), lambda: False, at_start), "done")

    def test_a_refusal_in_mid_run_is_waited_for(self):
        self.assertEqual(persist(self.refuses([StoreRefused] * 9), lambda: False, self.trouble), "done")

    def test_gives_up_when_time_is_over_but_never_before_the_first_try(self):
        self.assertEqual(persist(self.fails([]), lambda: True, self.trouble), "done")
        with self.assertRaisesRegex(GaveUp, "a"):
            persist(self.fails(["b", "a"]), lambda: True, self.trouble)

    def test_pauses_double_up_to_the_longest_and_end_when_time_is_over(self):
        now, pauses, lengths = [100.0], Pauses(), []

        def sleep(seconds):
            now[0] += seconds

        pauses.reset()
        with mock.patch("time.monotonic", lambda: now[0]), mock.patch("time.sleep", sleep):
            for _ in range(16):
                began = now[0]
                pauses.wait(lambda: False)
                lengths.append(round(now[0] - began, 3))
            began = now[0]
            pauses.wait(lambda: now[0] > began)
        self.assertEqual(lengths, [min(0.001 * 2**turn, 15.0) for turn in range(16)])
        self.assertLess(now[0] - began, 1)

    def test_only_the_store_is_asked_again(self):
        self.assertRaises(
            OSError, persist, mock.Mock(side_effect=OSError("disk")), lambda: False, self.trouble
        )


class SmallThingsTest(unittest.TestCase):
    def test_names_in_the_store(self):
        self.assertEqual(parse_checkpoint_id("000000000120-2"), CheckpointId(120, 2))
        for name in ("120-2", "000000000120-00", "000000000120-02", "000000000120", "x"):
            self.assertIsNone(parse_checkpoint_id(name), name)
        self.assertEqual(CheckpointId(120, 2).name, "000000000120-2")
        self.assertEqual(
            max(CheckpointId(9, 3), CheckpointId(10, 1), CheckpointId(10, 2)), CheckpointId(10, 2)
        )
        self.assertEqual(parse_range("000000000001-000000000032.ndjson"), (1, 32))
        self.assertIsNone(parse_range("000000000001-000000000032.ndjson.part"))

    def test_phases(self):
        clock = FakeClock(mono_ms=0, wall_ms=1_000)
        phases = Phases(clock)
        clock.advance(5)
        phases.enter("fetching")
        clock.advance(7)
        self.assertEqual(
            phases.document(),
            [
                {"name": "starting", "startedAtMs": 1_000, "durationMs": 5},
                {"name": "fetching", "startedAtMs": 1_005, "durationMs": 7},
            ],
        )


class GoldenKeysTest(unittest.TestCase):
    def test_keys_are_those_of_the_protocol(self):
        keys = Keys("job-a", 3)
        self.assertEqual(keys.order, "jobs/job-a/attempts/3/order.json")
        self.assertEqual(keys.log_chunk(1, 32), "jobs/job-a/attempts/3/logs/000000000001-000000000032.ndjson")
        self.assertEqual(
            keys.manifest(CheckpointId(7, 3)), "jobs/job-a/checkpoints/000000000007-3/manifest.json"
        )
        self.assertEqual(
            keys.stored_file(stored_at(CheckpointId(7, 3), "a/b")), "jobs/job-a/checkpoints/000000000007-3/files/a/b"
        )
        self.assertEqual(
            keys.manifest(CheckpointId(7, 3), 2), "jobs/job-a/checkpoints/000000000007-3/manifest.2.json"
        )
        self.assertEqual(
            keys.stored_file(stored_at(CheckpointId(7, 3), "a/b", 2)),
            keys.stored_file("000000000007-3/files.2/a/b"),
        )
        self.assertEqual(keys.stored_file("x"), "jobs/job-a/checkpoints/x")
        self.assertEqual(keys.restores, keys.restores_of(3))
        self.assertEqual(keys.bundle("ab"), "jobs/job-a/bundle/ab.tar.gz")
        self.assertTrue(os.path.normpath(keys.artifact("a")).startswith("jobs/job-a/attempts/3/artifacts"))
