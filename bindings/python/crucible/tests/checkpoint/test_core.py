import os
import signal
import sys
import types
import unittest

from fakes import JobTest


def writing(text):
    def write(path):
        with open(path, "w") as file:
            file.write(text)

    return write


class JobModuleTest(JobTest):
    def test_the_file_on_the_machine_counts_and_otherwise_the_packed_one(self):
        for present in (False, True):
            self.forget()
            said = []
            if present:
                sys.modules["crucible_job"] = types.SimpleNamespace(progress=lambda *words: said.append(words))
            self.helper("_job").progress(3, 9, 0.5)
            self.assertEqual(said, [(3, 9, 0.5)] if present else [])
            self.assertEqual("crucible.checkpoint._crucible_job" in sys.modules, not present)


class ScheduleTest(JobTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        self.core = self.helper("_core")
        self.now = 0.0

    def schedule(self, **options):
        return self.core.Schedule(clock=lambda: self.now, **options)

    def test_saves_every_so_many_steps_and_seconds(self):
        schedule = self.schedule(every_steps=3, every_seconds=10)
        self.assertEqual([int(schedule.decide(step)) for step in (1, 2, 3)], [0, 0, 1])
        schedule.begin(3)
        self.assertEqual(int(schedule.decide(4)), 0)
        self.now = 10.0
        self.assertEqual(int(schedule.decide(4)), 1)

    def test_takes_the_time_of_the_job(self):
        for text, seconds in (("30", 30), ("0", 600), ("x", 600), (None, 600)):
            os.environ.pop("CRUCIBLE_CHECKPOINT_EVERY_SECONDS", None)
            if text is not None:
                os.environ["CRUCIBLE_CHECKPOINT_EVERY_SECONDS"] = text
            self.now = 0.0
            schedule = self.schedule()
            self.now = seconds - 0.1
            self.assertEqual(int(schedule.decide(1)), 0)
            self.now = seconds
            self.assertEqual(int(schedule.decide(1)), 1)

    def test_saves_once_for_a_request_and_stops_after_a_notice(self):
        schedule = self.schedule(every_steps=100)
        self.ask("save")
        self.assertEqual([int(schedule.decide(step)) for step in (1, 2)], [1, 0])
        self.ask("stop")
        decision = schedule.decide(3)
        self.assertTrue(decision & self.core.Decision.SAVE and decision & self.core.Decision.STOP)
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_IGN)

    def test_refuses_a_pace_that_is_none(self):
        for options in ({"every_steps": 0}, {"every_seconds": -1.0}, {"every_seconds": float("nan")}):
            with self.assertRaisesRegex(ValueError, "must be above 0"):
                self.schedule(**options)


class FolderTest(JobTest):
    def kept(self, keep=2):
        return self.helper("_core").Folder(".pt", keep)

    def test_declares_whole_files_and_keeps_the_newest(self):
        folder = self.kept()
        for step in (1, 2, 30):
            folder.save(step, writing(str(step)))
        self.assertEqual(self.saved(), ["step-000000000002.pt", "step-000000000030.pt"])
        self.assertEqual([step for step, _ in self.declared()], [1, 2, 30])
        self.assertEqual(self.declared()[-1], (30, "step-000000000030.pt"))

    def test_leaves_nothing_of_a_save_that_fails(self):
        folder = self.kept()

        def fail(path):
            writing("half")(path)
            raise OSError("disk full")

        with self.assertRaisesRegex(OSError, "disk full"):
            folder.save(1, fail)
        self.assertEqual((self.saved(), self.declared()), ([], []))

    def test_replaces_a_checkpoint_of_the_same_step(self):
        folder = self.helper("_core").Folder("")
        for text in ("one", "two"):

            def write(path, text=text):
                os.mkdir(path)
                writing(text)(os.path.join(path, "model"))

            folder.save(5, write)
        with open(os.path.join(folder.path_of(5), "model")) as file:
            self.assertEqual(file.read(), "two")

    def test_keeps_the_last_save_though_others_have_higher_steps(self):
        folder = self.kept(keep=1)
        folder.save(50, writing("before"))
        folder.save(3, writing("now"))
        self.assertEqual(self.saved(), ["step-000000000003.pt"])

    def test_resumes_from_what_was_restored_and_from_nothing_else(self):
        folder = self.kept()
        folder.save(7, writing("x"))
        self.assertIsNone(folder.newest())
        for restored in (self.checkpoints, folder.path_of(7)):
            os.environ["CRUCIBLE_RESUME_FROM"] = restored
            self.assertEqual(folder.newest(), folder.path_of(7))
        os.environ["CRUCIBLE_RESUME_FROM"] = "other.bin"
        with self.assertRaisesRegex(ValueError, "other.bin was not saved by this helper"):
            folder.newest()


class OutsideTest(JobTest):
    IS_JOB = False

    def test_saves_to_checkpoints_and_resumes_from_the_newest(self):
        core = self.helper("_core")
        folder = core.Folder(".pt")
        self.assertIsNone(folder.newest())
        for step in (9, 100):
            folder.save(step, writing(str(step)))
        self.assertEqual(os.path.realpath(folder.newest()), os.path.join(self.checkpoints, "step-000000000100.pt"))
        self.assertEqual(int(core.Schedule(every_steps=5).decide(1)), 0)


if __name__ == "__main__":
    unittest.main()
