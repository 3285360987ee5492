"""The timer that ends a machine whatever becomes of everybody else (runner/crucible_runner/machine_timer.py)."""

import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "..", "..", "..", "runner", "crucible_runner", "machine_timer.py")
sys.dont_write_bytecode = True
SPEC = importlib.util.spec_from_file_location("machine_timer", PROGRAM)
machine_timer = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(machine_timer)

START_MS, END_MS = 60_000, 5_000


class EndTest(unittest.TestCase):
    def end(self, **told):
        return machine_timer.end_ms(1_000, (START_MS, END_MS), told or None)

    def test_a_machine_on_which_nobody_begins_ends_when_nobody_may_any_more(self):
        self.assertEqual(self.end(), 61_000)

    def test_a_runner_that_has_begun_counts_by_its_lease(self):
        self.assertEqual(self.end(leaseUntilMs=500_000, hardStopMs=None), 505_000)

    def test_a_hard_stop_comes_before_a_longer_lease(self):
        self.assertEqual(self.end(leaseUntilMs=500_000, hardStopMs=90_000), 90_000)
        self.assertEqual(self.end(leaseUntilMs=50_000, hardStopMs=90_000), 55_000)

    def test_a_runner_that_noted_nothing_has_not_begun(self):
        self.assertEqual(self.end(leaseUntilMs=None), 61_000)


class FolderTest(unittest.TestCase):
    """Has a folder with what runners noted."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="crucible-dead-man-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def note(self, attempt, **told):
        folder = os.path.join(self.folder, "state", attempt)
        os.makedirs(folder, exist_ok=True)
        now = {"boot": machine_timer.boot_id(), "monoMs": machine_timer.now_ms(), "wallMs": time.time_ns() // 1000000}
        path = os.path.join(folder, "runner.json")
        with open(path + ".new", "w") as file:
            json.dump(dict(now, **told), file)
        os.replace(path + ".new", path)


class NoteTest(FolderTest):
    def test_the_newest_note_counts_and_half_of_one_does_not(self):
        self.note("job-a-1", wallMs=5, leaseUntilMs=10)
        self.note("job-a-2", wallMs=7, leaseUntilMs=20)
        os.makedirs(os.path.join(self.folder, "state", "job-a-3"))
        with open(os.path.join(self.folder, "state", "job-a-3", "runner.json"), "w") as file:
            file.write('{"wallMs": 9')
        self.assertEqual(machine_timer.read_runner(os.path.join(self.folder, "state"))["leaseUntilMs"], 20)

    def test_nobody_has_begun_in_an_empty_folder(self):
        self.assertIsNone(machine_timer.read_runner(self.folder))

    def test_a_lease_goes_on_across_a_boot(self):
        told = {"boot": "before", "monoMs": 900_000, "wallMs": 5_000_000, "leaseUntilMs": 960_000, "hardStopMs": None}
        here = machine_timer.in_this_boot(told, "now", 10_000, 5_020_000)
        # Sixty seconds were left of it, and twenty have passed.
        self.assertEqual(here["leaseUntilMs"], 50_000)
        self.assertIsNone(here["hardStopMs"])
        self.assertEqual(machine_timer.in_this_boot(told, "before", 910_000, 0), told)


class LifeTest(FolderTest):
    """The program itself, with a metadata service and a `shutdown` that only notes that it was called."""

    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "state"))
        self.called = os.path.join(self.folder, "called")
        shutdown = os.path.join(self.folder, "shutdown")
        with open(shutdown, "w") as file:
            file.write('#!/bin/sh\necho "$@" >"%s"\n' % self.called)
        os.chmod(shutdown, 0o755)
        self.tag = "%d %d" % (START_MS, END_MS)
        self.server = http.server.HTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def handler(test):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self):
                self.answer(200, "the-token")

            def do_GET(self):
                is_tag = self.path == "/latest/meta-data/tags/instance/crucible:timer"
                is_allowed = self.headers.get("X-aws-ec2-metadata-token") == "the-token"
                self.answer(200 if is_tag and is_allowed else 404, test.tag)

            def answer(self, status, body):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode("ascii"))

            def log_message(self, *_):
                pass

        return Handler

    def begin(self, *told):
        code = (
            "import importlib.util, sys; spec = importlib.util.spec_from_file_location('d', %r);"
            "d = importlib.util.module_from_spec(spec); spec.loader.exec_module(d); d.LOOK_SECONDS = 0.02; d.main(%r, *%r)"
        ) % (PROGRAM, os.path.join(self.folder, "state"), told)
        environment = {
            "PATH": self.folder + os.pathsep + os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:%d" % self.server.server_port,
        }
        process = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def wait_for_shutdown(self, seconds):
        until = time.monotonic() + seconds
        while not os.path.exists(self.called) and time.monotonic() < until:
            time.sleep(0.02)
        return os.path.exists(self.called)

    def test_it_powers_off_a_machine_on_which_nobody_begins(self):
        self.tag = "300 100"
        self.begin()
        self.assertTrue(self.wait_for_shutdown(20))
        with open(self.called) as file:
            self.assertEqual(file.read(), "-h now\n")

    def test_it_goes_by_the_times_of_its_arguments(self):
        self.tag = "60000 60000"
        self.begin("300", "100")
        self.assertTrue(self.wait_for_shutdown(20))

    def test_it_leaves_a_machine_alone_whose_runner_has_time(self):
        self.tag = "300 100"
        self.note("job-a-1", leaseUntilMs=machine_timer.now_ms() + 60_000)
        self.begin()
        self.assertFalse(self.wait_for_shutdown(1.5))
        self.note("job-a-1", leaseUntilMs=machine_timer.now_ms() + 60_000, hardStopMs=machine_timer.now_ms())
        self.assertTrue(self.wait_for_shutdown(20))


if __name__ == "__main__":
    unittest.main()
