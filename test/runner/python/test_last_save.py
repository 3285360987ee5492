import unittest
from types import SimpleNamespace

from support import FakeClock

from crucible_runner.checkpoint.evidence import COMPLETE, QUIET, SETTLED, Evidence
from crucible_runner.checkpoint.generations import Generation, Generations, shape_of
from crucible_runner.checkpoint.last_save import LastSave
from crucible_runner.checkpoint.scan import FileStamp, Selection
from crucible_runner.control.stop import Drain
from crucible_runner.running import Running

QUIET_MS = 400
UPLOAD_MS = 50
BEGAN_MS = 1_000_000
FILES = {"model.pt": FileStamp(100, 1, 1, 1, 0o600)}


class LastSaveTest(unittest.TestCase):
    def setUp(self):
        self.clock = FakeClock(mono_ms=BEGAN_MS)
        self.interval_ms = None
        self.hurried = 0
        self.saves = Generations((), (), QUIET_MS)
        self.scanner = SimpleNamespace(
            saves=self.saves,
            quiet_ms=QUIET_MS,
            interval_ms=lambda: self.interval_ms,
            trained_since_ms=lambda: BEGAN_MS - 2_000,
        )
        self.checkpoints = SimpleNamespace(uploads=[], upload_ms=UPLOAD_MS, hurry=self.hurry)

    def hurry(self):
        self.hurried += 1

    def save(self, begun_ms, changed_ms, state=None, burst_ms=None):
        """A save that began and changed this long after the drain began; `state` is what it is in the store as."""
        generation = Generation(1, dict(FILES), BEGAN_MS + begun_ms, None)
        generation.written_ns = (self.clock.wall_ms() + begun_ms) * 1_000_000
        generation.changed_ms = BEGAN_MS + changed_ms
        generation.burst_ms = BEGAN_MS + (begun_ms if burst_ms is None else burst_ms)
        generation.selection = Selection(generation.files, {}, ".", None, None, frozenset(), generation.files)
        if self.saves.current is not None:
            self.saves.closed.append(self.saves.current)
        self.saves.current = generation
        if state is not None:
            self.upload(generation, state)
        return generation

    def upload(self, generation, state):
        evidence = Evidence(state, "", "")
        self.checkpoints.uploads.append(
            SimpleNamespace(generation=generation, files=dict(generation.files), evidence=evidence)
        )

    def last_save(self):
        return LastSave(self.checkpoints, self.scanner, Drain("interrupted", BEGAN_MS, BEGAN_MS + 9_000), self.clock)

    def test_a_save_that_was_written_since_the_last_look_is_waited_for(self):
        self.scanner.scan = lambda: self.save(-10, -10)
        order = {"checkpoint": {}}
        running = SimpleNamespace(
            _context=SimpleNamespace(clock=self.clock, remark=lambda _: None),
            _attempt=SimpleNamespace(order=order),
            _checkpointing=SimpleNamespace(uploads=self.checkpoints, scanner=self.scanner, upload_ms=lambda: UPLOAD_MS),
            is_command_running=True,
        )
        workload = SimpleNamespace(handles_request_to_stop=lambda: False)
        waiting = Running._last_save(running, workload, Drain("interrupted", BEGAN_MS, BEGAN_MS + 9_000))
        self.assertFalse(waiting.is_over())
        self.upload(self.saves.current, COMPLETE)
        self.assertTrue(waiting.is_over())

    def due_ms(self):
        """How long after the beginning of the drain the next save should be in the store."""
        due_ms = self.last_save().due_ms()
        return due_ms if due_ms is None else due_ms - BEGAN_MS

    def test_when_the_next_save_is_due(self):
        for name, interval_ms, saves, expected in (
            ("no interval is known", None, [(-500, -300, COMPLETE)], None),
            ("a quarter later than usual", 1_000, [(-500, -300, COMPLETE)], 1_250 - 300 + QUIET_MS + UPLOAD_MS),
            ("too late to be waited for", 1_000, [(-1_500, -1_251, COMPLETE)], None),
            ("just not too late", 1_000, [(-1_500, -1_250, COMPLETE)], QUIET_MS + UPLOAD_MS),
            ("none yet: since it began to train", 2_000, [], 500 + QUIET_MS + UPLOAD_MS),
            ("none yet, long ago", 1_500, [], None),
        ):
            with self.subTest(name):
                self.setUp()
                self.interval_ms = interval_ms
                for each in saves:
                    self.save(*each)
                self.assertEqual(self.due_ms(), expected)

    def test_a_save_under_way_is_waited_for_whatever_the_interval(self):
        self.save(-3_000, -2_300, COMPLETE)
        self.save(-200, -100)
        # As long as the one before it took, then the quiet time and the upload.
        self.assertEqual(self.due_ms(), 700 - 200 + QUIET_MS + UPLOAD_MS)
        self.setUp()
        self.save(-200, -100)
        self.assertEqual(self.due_ms(), QUIET_MS + UPLOAD_MS)
        self.setUp()
        self.save(-5_000, -2_300, COMPLETE)
        # It went on after a pause.
        self.save(-4_000, -100, burst_ms=-100)
        self.assertEqual(self.due_ms(), 2_700 - 100 + QUIET_MS + UPLOAD_MS)

    def test_what_is_safe(self):
        under_way = QUIET_MS + UPLOAD_MS
        for name, state, shapes, change, is_safe in (
            ("complete", COMPLETE, (), None, True),
            ("settled", SETTLED, (), None, True),
            ("quiet", QUIET, (), None, False),
            ("quiet, and like a complete one", QUIET, [{"model.pt": 100}], None, True),
            ("quiet, and less than a complete one", QUIET, [{"model.pt": 120}], None, False),
            ("not in the store", None, [{"model.pt": 100}], None, False),
            ("it has grown since", COMPLETE, (), {"more.pt": FILES["model.pt"]}, False),
        ):
            with self.subTest(name):
                self.setUp()
                self.saves.complete_shapes.extend(shape_of(shape) for shape in shapes)
                generation = self.save(-500, -300, state)
                generation.files.update(change or {})
                self.assertEqual(self.due_ms() != under_way, is_safe)

    def test_quiet_is_not_safe_while_its_member_lacks_what_its_neighbours_have(self):
        self.saves.complete_shapes.append(shape_of({"model.pt": 100}))
        generation = self.save(-500, -300, QUIET)
        stamps = {path: FileStamp(1, at, 1, 1, 0o600) for at, path in enumerate(("10/a", "10/done", "20/a"))}
        generation.selection = generation.selection._replace(files=stamps)
        self.assertEqual(self.due_ms(), QUIET_MS + UPLOAD_MS)

    def test_what_is_older_than_the_newest_upload_is_another_save(self):
        old = self.save(-5_000, -4_000, COMPLETE)
        self.save(-500, -300)
        self.upload(old, COMPLETE)
        self.assertEqual(self.due_ms(), 1_000 - 500 + QUIET_MS + UPLOAD_MS)

    def test_without_a_wait_it_is_over_at_once(self):
        self.save(-500, -300)
        self.assertTrue(self.last_save().is_over())
        self.assertEqual(self.hurried, 0)

    def test_waits_for_a_save_that_was_not_safe_when_the_drain_began(self):
        # Another one after it would be due in time, too; one is enough.
        self.interval_ms = 1_000
        self.save(-5_000, -4_000, COMPLETE)
        waiting = self.last_save()
        waiting.wait_until(BEGAN_MS + 5_000)
        self.assertEqual(self.hurried, 1)
        # The previous one is safe, but the runner does not wait for it.
        self.assertFalse(waiting.is_over())
        newer = self.save(100, 800)
        self.assertFalse(waiting.is_over())
        self.upload(newer, COMPLETE)
        self.assertTrue(waiting.is_over())

    def test_no_save_yet_is_not_over(self):
        waiting = self.last_save()
        waiting.wait_until(BEGAN_MS + 5_000)
        self.assertFalse(waiting.is_over())

    def test_is_over_when_its_time_has_passed(self):
        waiting = self.last_save()
        waiting.wait_until(BEGAN_MS + 5_000)
        self.clock.advance(4_999)
        self.assertFalse(waiting.is_over())
        self.clock.advance(1)
        self.assertTrue(waiting.is_over())

    def test_after_a_save_that_was_under_way_another_one_may_be_due(self):
        for interval_ms, is_over in (None, True), (1_000, False), (9_000, True):
            with self.subTest(interval_ms):
                self.setUp()
                self.interval_ms = interval_ms
                generation = self.save(-100, -50)
                waiting = self.last_save()
                waiting.wait_until(BEGAN_MS + 5_000)
                generation.changed_ms = BEGAN_MS + 500
                self.upload(generation, COMPLETE)
                self.assertEqual(waiting.is_over(), is_over)

    def test_a_save_that_was_seen_late_was_under_way_when_the_drain_began(self):
        for written_ms, is_over in (-50, False), (50, True):
            self.setUp()
            self.interval_ms = 1_000
            waiting = self.last_save()
            waiting.wait_until(BEGAN_MS + 5_000)
            generation = self.save(100, 500)
            generation.written_ns += (written_ms - 100) * 1_000_000
            self.upload(generation, COMPLETE)
            self.assertEqual(waiting.is_over(), is_over)
