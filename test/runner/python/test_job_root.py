import os
import subprocess
import sys
from unittest import mock

from support import FolderTest

from crucible_runner.process import job_root
from crucible_runner.process.processes import MACHINE_VARIABLE


class JobRootTest(FolderTest):
    def take(self, attempt_id, wait_seconds=0):
        return job_root.take(self.at("jobs", "train"), attempt_id, wait_seconds)

    def take_and_leave(self, attempt_id):
        os.close(self.take(attempt_id))

    def test_the_next_attempt_gets_the_same_directory_without_its_files(self):
        self.take_and_leave("job-1")
        self.write("jobs/train/work/old.txt", "x")
        self.take_and_leave("job-2")
        self.assertEqual(os.listdir(self.at("jobs")), ["train.lock"])
        self.assertEqual(self.read("jobs/train.lock"), "job-2")

    def test_a_runner_that_is_started_again_finds_its_files(self):
        self.take_and_leave("job-1")
        self.write("jobs/train/work/mine.txt", "x")
        self.take_and_leave("job-1")
        self.assertEqual(self.read("jobs/train/work/mine.txt"), "x")

    def test_two_attempts_never_have_it_at_once(self):
        lock = self.take("job-1")
        self.write("jobs/train/work/mine.txt", "x")
        with self.assertRaisesRegex(job_root.InUse, "the attempt job-1 of this job still runs on this machine"):
            self.take("job-2")
        self.assertEqual(self.read("jobs/train/work/mine.txt"), "x")
        os.close(lock)
        os.close(self.take("job-2"))

    def test_a_lock_that_was_removed_while_it_was_awaited_is_made_anew(self):
        lock = self.take("job-1")
        at_last = []
        with mock.patch("crucible_runner.process.job_root._is_in_place", side_effect=[False, True]) as look:
            os.close(lock)
            at_last.append(self.take("job-2"))
        self.assertEqual(look.call_count, 2)
        self.assertEqual(self.read("jobs/train.lock"), "job-2")
        os.close(at_last[0])

    def test_a_process_that_outlived_its_attempt_is_ended_first(self):
        attempt_id = "job-outlived-%d-1" % os.getpid()
        self.take_and_leave(attempt_id)
        environment = dict(os.environ, **{MACHINE_VARIABLE: attempt_id})
        wait = "import sys; print('ready', flush=True); sys.stdin.read()"
        left = subprocess.Popen(
            [sys.executable, "-c", wait], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.addCleanup(left.stdin.close)
        self.addCleanup(left.stdout.close)
        self.assertEqual(left.stdout.readline(), b"ready\n")
        self.take_and_leave("job-outlived-2")
        self.assertEqual(left.wait(), -9)
