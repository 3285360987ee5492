import contextlib
import errno
import fcntl
import io
import os
import subprocess
import sys
import time
import unittest
from unittest import mock

from support import FakeClock, FolderTest

from crucible_runner.deadman import LastDuties
from crucible_runner.process import processes
from crucible_runner.process.guard import Children, Guard, Options, Work, run_guarded


class UnusableDirectoryTest(FolderTest):
    """The runner proper must never be started where its directory cannot be used."""

    def guard(self, root, job="unit-guard-%d" % os.getpid()):
        options = Options(
            store="file://" + self.folder,
            job=job,
            attempt=1,
            root=root,
            secret_key_file=None,
            grant_file=None,
            power_off="echo off >> '%s'" % self.at("off"),
            notice_file=None,
            has_notice_kill=False,
        )
        said = io.StringIO()
        # As if it had been started with the variable that it would start itself anew to have.
        with mock.patch.dict(os.environ, {processes.MACHINE_VARIABLE: options.attempt_id}):
            with contextlib.redirect_stderr(said):
                code = run_guarded(options, Work(self.fail, self.fail), [])
        return code, said.getvalue(), os.path.exists(self.at("off"))

    def test_switches_the_machine_off(self):
        self.write("file", "")
        code, said, is_off = self.guard(self.at("file", "root"))
        self.assertEqual((code, is_off), (1, True))
        self.assertIn("cannot be used: [Errno 20] Not a directory", said)

    def test_switches_the_machine_off_where_nothing_can_be_locked(self):
        with mock.patch("fcntl.flock", side_effect=OSError(errno.ENOLCK, "No locks available")):
            code, said, is_off = self.guard(self.at("root"))
        self.assertEqual((code, is_off), (1, True))
        self.assertIn("No locks available", said)

    def test_leaves_a_machine_on_that_has_a_runner(self):
        os.mkdir(self.at("root"))
        with open(self.at("root", "runner.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            code, said, is_off = self.guard(self.at("root"))
        self.assertEqual((code, is_off), (0, False))
        self.assertIn("another runner is already running", said)

    def test_leaves_a_machine_on_whose_runner_began_before_the_disk_went_bad(self):
        job = "unit-bad-disk-%d" % os.getpid()
        environment = dict(os.environ, CRUCIBLE_MACHINE=job + "-1")
        living = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env=environment)
        self.addCleanup(living.wait)
        self.addCleanup(living.kill)
        while living.pid not in processes.of_machine(job + "-1", [], []):
            time.sleep(0.01)
        with mock.patch("os.open", side_effect=OSError(errno.EROFS, "Read-only file system")):
            code, said, is_off = self.guard(self.at("root"), job)
        self.assertEqual((code, is_off), (1, False))
        self.assertIn("Read-only file system", said)


class NoticeTest(FolderTest):
    """A provider that kills at the time of its notice."""

    def test_a_clock_that_is_set_ends_no_machine_before_its_notice(self):
        hour = 3_600_000
        for step in (2 * hour, -2 * hour, 30 * 24 * hour):
            clock = FakeClock()
            self.write("notice", '{"terminateAtMs": %d}' % (clock.wall_ms() + 120_000))
            options = Options("", "job-a", 1, self.folder, None, None, None, self.at("notice"), True)
            guard = Guard(options, Children(0, 0), -1, None, clock)
            self.assertFalse(guard._is_taken_back())
            clock.set_wall(clock.wall_ms() + step)
            self.assertFalse(guard._is_taken_back(), step)
            clock.advance(119_000)
            self.assertFalse(guard._is_taken_back(), step)
            clock.advance(1_000)
            self.assertTrue(guard._is_taken_back(), step)


class LastDutiesTest(unittest.TestCase):
    """A process that the guard is about to end has its duties if the guard does not."""

    def test_are_done_although_the_guard_dies_only_after_the_process_that_asked(self):
        self.assertEqual(self.done_with([7, 7, 1, 1]), ["off"])

    def test_are_done_for_a_guard_that_is_stuck(self):
        self.assertEqual(self.done_with([7] * 1_000), ["off"])

    def done_with(self, parents):
        clock = FakeClock()
        done = []
        duties = LastDuties(mock.Mock(power_off="off", machine="m"), mock.Mock(guard=7), lambda _: None)
        with mock.patch("os.getppid", side_effect=parents), mock.patch.object(processes, "end_all"):
            with mock.patch("crucible_runner.deadman.power_off", done.append):
                with mock.patch("time.sleep", lambda seconds: clock.advance(int(seconds * 1000))):
                    duties.take_over(clock)
        return done
