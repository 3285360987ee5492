import os
import signal
import subprocess
import sys
import time
import unittest

from support import FolderTest, patient

from crucible_runner.process import processes
from crucible_runner.process.container import ASKING

# Runs until it is asked to stop, and then says something before it saves.
SAVING = """
import signal, sys, time
def save(*_):
    print("saving", flush=True)
    open("saved", "w").close()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
open("ready", "w").close()
while True:
    time.sleep(1)
"""
# Says how often it was asked to stop, once enough time has passed for that to be known.
COUNTING = """
import signal, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
open("ready", "w").close()
while not asked:
    time.sleep(0.05)
time.sleep(0.5)
open("log", "w").write("%d" % len(asked))
"""
# Says, when it is asked to stop, whether the shell that started it has died before.
HEIR = """
import os, signal, sys, time
shell = os.getppid()
def end(*_):
    open("log", "w").write("alone" if os.getppid() != shell else "with its shell")
    os._exit(143)
signal.signal(signal.SIGTERM, end)
open("ready", "w").close()
while True:
    time.sleep(1)
"""
# Passes signals on, as the real one does, but later and once, so that it shows who else got them.
TIMEOUT = """
import os, signal, subprocess, sys, time
os.setpgid(0, 0)
open("/proc/self/comm", "w").write("timeout")
child = subprocess.Popen(sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), child.terminate()))
child.wait()
"""
# The first process of a container, which hears no signal from within.
FIRST = """
(%s) &
until [ -e ready ]; do sleep 0.02; done
sh -c "$ASKING"
while kill -0 -1; do sleep 0.05; done
"""
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc"]


def can_make_containers():
    try:
        return subprocess.call(CONTAINER + ["true"], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


@unittest.skipUnless(can_make_containers(), "only for who may make one")
class ContainerTest(FolderTest):
    def ask(self, command):
        for name, script in (("saving", SAVING), ("counting", COUNTING), ("timeout", TIMEOUT)):
            self.write(name + ".py", script)
        environment = dict(os.environ, PYTHON=sys.executable, ASKING=ASKING)
        first = CONTAINER + ["sh", "-c", FIRST % command]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(first, cwd=self.folder, env=environment, timeout=patient(60), **quiet)
        return self.read("log")

    def test_tells_what_runs_in_a_container_and_not_what_listens_to_it(self):
        self.assertEqual(self.ask('"$PYTHON" saving.py | tr a-z A-Z | tee log'), "SAVING\n")
        self.assertTrue(os.path.exists(self.at("saved")))

    def test_tells_nobody_twice(self):
        self.assertEqual(self.ask('"$PYTHON" timeout.py "$PYTHON" counting.py'), "1")


class SessionTest(FolderTest):
    @unittest.skipUnless(os.path.exists("/proc/self/comm"), "only where sessions can be seen")
    def test_tells_nobody_twice(self):
        self.write("counting.py", COUNTING)
        self.write("timeout.py", TIMEOUT)
        command = [sys.executable, "timeout.py", sys.executable, "counting.py"]
        process = subprocess.Popen(["sh", "-c", '"$@"; :', "sh"] + command, cwd=self.folder, start_new_session=True)
        while not os.path.exists(self.at("ready")):
            time.sleep(0.02)
        self.assertIsNotNone(processes.ask_to_stop(process.pid))
        process.wait()
        while processes.of_session(process.pid):
            time.sleep(0.02)
        self.assertEqual(self.read("log"), "1")
        self.assertIsNone(processes.ask_to_stop(process.pid))

    @unittest.skipUnless(os.path.exists("/proc/self/status"), "only where signals can be seen")
    def test_tells_shells_that_will_die_before_their_commands(self):
        # A shell that is still there when its command ends takes its exit code along.
        self.write("heir.py", HEIR)
        for command in ('"$@"; :', 'sh -c \'"$@"; :\' sh "$@"; :') * 10:
            shell = ["sh", "-c", command, "sh", sys.executable, "heir.py"]
            process = subprocess.Popen(shell, cwd=self.folder, start_new_session=True)
            while not os.path.exists(self.at("ready")):
                time.sleep(0.02)
            self.assertEqual(len(processes.ask_to_stop(process.pid)), 1)
            self.assertEqual(process.wait(), -signal.SIGTERM)
            while processes.of_session(process.pid):
                time.sleep(0.02)
            self.assertEqual(self.read("log"), "alone")
            for name in ("ready", "log"):
                os.remove(self.at(name))

    @unittest.skipUnless(os.path.exists("/proc/self/status"), "only where signals can be seen")
    def test_does_not_wait_for_shells_that_go_on(self):
        self.write("counting.py", COUNTING)
        script = "trap 'echo heard > trapped' TERM; \"$@\" & wait; wait"
        shell = ["sh", "-c", script, "sh", sys.executable, "counting.py"]
        process = subprocess.Popen(shell, cwd=self.folder, start_new_session=True)
        while not os.path.exists(self.at("ready")):
            time.sleep(0.02)
        self.assertEqual(len(processes.ask_to_stop(process.pid)), 2)
        self.assertEqual(process.wait(), 0)
        self.assertEqual((self.read("log"), self.read("trapped")), ("1", "heard\n"))
