import os
import unittest
from unittest import mock

from support import FolderTest

from crucible_runner.clock import in_words
from crucible_runner.process.symptoms import is_full, oom_kills
from crucible_runner.process.verdict import End, judge


def end(status, **changes):
    return End(status, False, False, [], [], False, False)._replace(**changes)


class JudgeTest(unittest.TestCase):
    def assert_judged(self, ended, outcome, reason, message, drain_reason=None, is_done=False):
        judged = judge(ended, drain_reason, is_done)
        self.assertEqual((judged.outcome, judged.reason, judged.message), (outcome, reason, message))

    def test_the_end_of_a_command_by_itself(self):
        self.assert_judged(end(0), "succeeded", "completed", "The command ended with exit code 0.")
        self.assert_judged(
            end(1, error_lines=["x", "ValueError: no", ""]),
            "failed",
            "workload",
            "The command ended with exit code 1: ValueError: no.",
        )
        self.assert_judged(end(-11), "failed", "workload", "The command was killed by SIGSEGV.")
        self.assert_judged(
            end(137), "failed", "workload", "The command ended with exit code 137, as after SIGKILL."
        )

    def test_names_the_likely_cause(self):
        self.assert_judged(
            end(-9, is_out_of_memory=True),
            "failed",
            "workload",
            "The command was killed by SIGKILL, most likely out of memory.",
        )
        self.assert_judged(
            end(-11, is_out_of_memory=True), "failed", "workload", "The command was killed by SIGSEGV."
        )
        self.assert_judged(
            end(1, is_disk_full=True),
            "failed",
            "disk-full",
            "The command ended with exit code 1; the machine's disk is full.",
        )

    def test_a_full_disk_does_no_harm_to_what_succeeds(self):
        self.assertEqual(judge(end(0, is_disk_full=True), None, False).outcome, "succeeded")

    def test_the_end_of_a_command_that_was_asked_to_stop(self):
        asked = end(143, was_asked_to_stop=True)
        self.assertEqual(judge(asked, "deadline", False)[:2], ("stopped", "deadline"))
        self.assertEqual(judge(asked, "deadline", True)[:2], ("stopped", "deadline"))
        self.assertEqual(judge(asked._replace(status=0), "lease", False)[:2], ("stopped", "lease"))
        self.assertEqual(judge(asked._replace(status=0), "lease", True)[:2], ("succeeded", "completed"))
        self.assertEqual(judge(asked._replace(status=1), "lease", True)[:2], ("stopped", "lease"))
        self.assertEqual(judge(end(-9, was_killed=True), "migrated", True)[:2], ("stopped", "migrated"))

    def test_it_was_judged_as_if_there_were_no_drain_when_it_ended_before(self):
        self.assertEqual(judge(end(1), "deadline", False)[:2], ("failed", "workload"))
        self.assertEqual(judge(end(0), "deadline", False)[:2], ("succeeded", "completed"))

    def test_good_order(self):
        for status in (0, 143, 130):
            self.assertTrue(end(status, was_asked_to_stop=True).is_in_good_order)
        for status in (1, -15, 137):
            self.assertFalse(end(status, was_asked_to_stop=True).is_in_good_order)
        self.assertFalse(end(143).is_in_good_order)
        self.assertFalse(end(0, was_asked_to_stop=True, was_killed=True).is_in_good_order)

    def test_a_message_stays_short(self):
        self.assertLess(len(judge(end(1, error_lines=["x" * 10_000]), None, False).message), 600)


class SymptomsTest(FolderTest):
    def test_counts_what_the_kernel_killed(self):
        self.write("vmstat", "pgfault 10\noom_kill 3\n")
        self.write("events", "low 0\noom 1\noom_kill 2\noom_group_kill 0\n")
        self.assertEqual(oom_kills([self.at("vmstat"), self.at("none"), self.at("events")]), [3, 2])

    def test_a_disk_without_room_or_without_names_is_full(self):
        disk = os.statvfs(self.folder)
        self.assertFalse(is_full(self.folder))

        class Disk:
            f_blocks, f_bavail, f_bfree, f_frsize = 10**9, 10, 10, 4096
            f_files, f_favail, f_ffree = disk.f_files, 1000, 1000

        with mock.patch("os.statvfs", return_value=Disk):
            self.assertTrue(is_full(self.folder))
        Disk.f_bavail = Disk.f_bfree = 10**9
        Disk.f_files, Disk.f_favail, Disk.f_ffree = 1000, 0, 0
        with mock.patch("os.statvfs", return_value=Disk):
            self.assertTrue(is_full(self.folder))

    def test_what_is_kept_for_the_superuser_is_room_for_it_alone(self):
        class Disk:
            f_blocks, f_bavail, f_bfree, f_frsize = 10**9, 0, 10**6, 4096
            f_files, f_favail, f_ffree = 0, 0, 0

        with mock.patch("os.statvfs", return_value=Disk):
            for user, is_expected in ((0, False), (1000, True)):
                with mock.patch("os.geteuid", return_value=user):
                    self.assertEqual(is_full(self.folder), is_expected)

    def test_a_file_system_that_does_not_say_is_not_full(self):
        class Disk:
            f_blocks = f_bavail = f_bfree = f_frsize = f_files = f_favail = f_ffree = 0

        with mock.patch("os.statvfs", return_value=Disk):
            self.assertFalse(is_full(self.folder))

    def test_durations_in_words(self):
        said = [in_words(ms) for ms in (0, 999, 1_000, 61_000, 3_600_000, 3_723_000, 90_000_000)]
        self.assertEqual(said, ["0 ms", "999 ms", "1 s", "1 min 1 s", "1 h", "1 h 2 min", "25 h"])
