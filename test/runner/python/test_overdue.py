import os
import threading
import time
from types import SimpleNamespace
from unittest import mock

from support import FakeClock, FolderTest

from crucible_runner.checkpoint.evidence import Evidence
from crucible_runner.checkpoint.overdue import Overdue
from crucible_runner.keys import CheckpointId

QUIET_MS = 1_000


class OverdueTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.clock = FakeClock()
        self.checkpoints = SimpleNamespace(
            complete_at_ms=None, stored_at_ms=None, uploads=[], hindrance="", failure="", saving=lambda: None
        )
        self.interval_ms = None
        self.scanner = SimpleNamespace(
            interval_ms=lambda: self.interval_ms, saves=SimpleNamespace(current=None, restless_since_ms=None), left_out={}
        )
        self.remarks = []
        os.makedirs(self.at("work", "checkpoints"))
        self.begin()

    def begin(self, every_ms=0):
        self.overdue = Overdue(self.checkpoints, self.scanner, self.at("work", "checkpoints"), self.at("work"), self.clock)
        with mock.patch.object(threading.Thread, "start", lambda thread: None):
            self.overdue.begin(QUIET_MS, every_ms, self.remarks.append)
        self.written_ns = time.time_ns()

    def check(self, ms=0):
        """The warning after so much time, as its kind and text."""
        self.clock.advance(ms)
        self.overdue.check()
        warning = self.overdue.warning
        return None if warning is None else (warning["kind"], warning["text"])

    def save(self, name, size=10):
        """Each write is later than the one before."""
        self.written_ns += 1_000_000_000
        path = self.write("work/" + name, "x" * size)
        os.utime(path, ns=(self.written_ns, self.written_ns))

    def test_how_long_nothing_may_come(self):
        for name, interval_ms, every_ms, complete_after_ms, patience_ms in (
            ("before anything is known", None, 0, None, 360_000),
            ("before anything is known, at a slow pace", None, 200_000, None, 600_000),
            ("three times the interval", 30_000, 0, None, 90_000),
            ("three times the pace, where that is longer", 30_000, 40_000, None, 120_000),
            ("not for saves that come at once", 100, 0, None, 20_000),
            ("since the last complete one", 30_000, 0, 7_000, 97_000),
        ):
            with self.subTest(name):
                self.interval_ms = interval_ms
                self.checkpoints.complete_at_ms = None
                self.begin(every_ms)
                if complete_after_ms is not None:
                    self.checkpoints.complete_at_ms = self.clock.mono_ms() + complete_after_ms
                self.assertIsNone(self.check(patience_ms))
                kind, text = self.check(1)
                self.assertEqual(kind, "no-checkpoint")
                self.assertIn("nothing was written to checkpoints", text)
                self.assertIn("since the start" if complete_after_ms is None else "for 1 min 30 s", text)

    def test_says_what_the_last_one_is_worth(self):
        evidence = Evidence("quiet", "quiet", "latest is not there")
        newest = SimpleNamespace(checkpoint=CheckpointId(7, 2), generation=object(), evidence=evidence)
        self.checkpoints.uploads = [newest]
        self.scanner.saves.current = newest.generation
        self.assertIn("the last one (000000000007-2) is only provisional: latest is not there.", self.check(361_000)[1])
        # What is being written now is another one.
        self.scanner.saves.current = object()
        self.begin()
        self.assertIn("nothing was written", self.check(361_000)[1])

    def test_says_that_the_upload_fails(self):
        self.scanner.saves.current = object()
        self.checkpoints.failure = "403 AccessDenied"
        self.assertIn("the upload fails: 403 AccessDenied", self.check(361_000)[1])

    def test_says_that_there_was_no_pause_in_which_to_take_one(self):
        self.scanner.saves.current = object()
        self.assertIn("checkpoints is written too often to be quiet", self.check(361_000)[1])

    def test_says_within_two_minutes_that_files_are_written_without_a_pause(self):
        self.begin(every_ms=300_000)
        self.scanner.saves.restless_since_ms = self.clock.mono_ms()
        self.assertIsNone(self.check(99_999))
        kind, text = self.check(1)
        self.assertEqual(kind, "no-checkpoint")
        self.assertRegex(text, r"checkpoints is written again .* without a pause of 1 s.* folder of its own.* keep the last two\.")
        # One of them was stored, and the next is not due yet.
        self.checkpoints.stored_at_ms = self.clock.mono_ms()
        self.assertIsNone(self.check(449_999))
        self.checkpoints.saving = lambda: {"what": "checkpoint"}
        self.assertIsNone(self.check(1))
        self.checkpoints.saving = lambda: None
        self.assertIsNotNone(self.check())

    def test_a_hindrance_that_stays_is_told_and_a_passing_one_is_not(self):
        self.checkpoints.hindrance = "model.pt is held open for writing by pid 7"
        self.assertIsNone(self.check())
        self.assertIsNone(self.check(19_999))
        self.checkpoints.hindrance = ""
        self.assertIsNone(self.check(1))
        self.checkpoints.hindrance = "model.pt is held open for writing by pid 7"
        self.assertIsNone(self.check())
        self.assertIsNone(self.check(19_999))
        kind, text = self.check(1)
        self.assertEqual(kind, "no-checkpoint")
        self.assertIn("model.pt is held open for writing by pid 7. See docs/guides/checkpoints.md.", text)

    def test_a_warning_is_said_once_and_taken_back(self):
        self.check(361_000)
        since_ms = self.overdue.warning["sinceMs"]
        self.check(5_000)
        self.assertEqual((len(self.remarks), self.overdue.warning["sinceMs"]), (1, since_ms))
        self.assertEqual(since_ms, self.clock.wall_ms() - 5_000)
        self.checkpoints.complete_at_ms = self.clock.mono_ms()
        self.assertIsNone(self.check())
        self.assertIn("is resolved", self.remarks[1])
        self.assertIsNone(self.check())
        self.assertEqual(len(self.remarks), 2)

    def test_finds_what_is_saved_elsewhere(self):
        for name, size, is_found in (
            ("runs/exp1/last.pt", 10, True),
            ("last.bin", 10, True),
            # The same thing under other numbers.
            ("runs/model-%d.npz", 10, True),
            ("runs/model.weird", 1024 * 1024, True),
            ("runs/notes.txt", 1024 * 1024 - 1, False),
            ("runs/train.log", 2 * 1024 * 1024, False),
            ("wandb/model.pt", 10, False),
            ("node_modules/model.pt", 10, False),
            ("checkpoints/model.pt", 10, False),
        ):
            with self.subTest(name):
                self.setUp()
                for count in range(2):
                    self.save(name % count if "%" in name else name, size)
                    self.assertIsNone(self.check())
                self.save(name % 2 if "%" in name else name, size)
                found = self.check()
                self.assertEqual(found is not None and found[0] == "outside", is_found)
                if is_found:
                    self.assertIn("was written 3 times. Set checkpoint.directory to %s." % (os.path.dirname(name) or "."), found[1])

    def test_looks_into_folders_that_are_nested_as_deeply_as_paths_can_be_long(self):
        with self.in_deep_folder("work", 1_500):
            open("last.pt", "w").close()
            os.utime("last.pt", ns=(self.written_ns + 10**9, self.written_ns + 10**9))
        self.assertEqual(self.overdue._saved_outside(1).path, "0/" * 1_500 + "last.pt")

    def test_what_was_there_before_the_start_is_not_saved(self):
        self.save("last.pt")
        os.utime(self.at("work", "last.pt"), ns=(1, 1))
        for _ in range(3):
            self.assertIsNone(self.check())
        self.save("last.pt"), self.check(), self.save("last.pt")
        self.assertIsNone(self.check())

    def test_what_is_saved_elsewhere_does_not_count_once_something_was_saved_here(self):
        for change in (
            lambda: setattr(self.checkpoints, "complete_at_ms", self.clock.mono_ms()),
            lambda: self.checkpoints.uploads.append(mock.Mock()),
            lambda: setattr(self.scanner.saves, "current", mock.Mock()),
        ):
            self.setUp()
            change()
            for _ in range(3):
                self.save("runs/last.pt")
                self.assertIsNone(self.check())
            self.overdue.end()
            self.assertIsNone(self.overdue.warning)

    def test_says_of_the_file_that_was_written_most(self):
        for count in range(5):
            self.save("b/model.pt")
            if count > 1:
                self.save("a/other.pt")
            self.overdue.check()
        self.overdue._warning = None
        self.assertIn("./b/model.pt was written 5 times", self.check()[1])

    def test_at_the_end_of_a_program_two_writes_are_enough(self):
        for writes, is_said in (1, False), (2, True):
            self.setUp()
            for _ in range(writes):
                self.save("runs/last.pt")
                self.check()
            self.overdue.end()
            self.assertEqual(self.overdue.warning is not None, is_said)
            self.assertEqual(len(self.remarks), is_said)
            # The thread may look once more; what was said stays.
            self.checkpoints.complete_at_ms = self.clock.mono_ms()
            self.overdue.check()
            self.assertEqual(self.overdue.warning is not None, is_said)

    def test_the_end_says_nothing_new_where_a_warning_stands(self):
        self.check(361_000)
        for _ in range(2):
            self.save("runs/last.pt"), self.overdue._saved_outside(1)
        self.overdue.end()
        self.assertEqual((self.overdue.warning["kind"], len(self.remarks)), ("no-checkpoint", 1))
