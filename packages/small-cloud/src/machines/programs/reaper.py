"""Supervises one command of a machine on hosts without namespaces: `reaper.py COMMAND...`.

It reports the end of the command through descriptor 3, and stays while any descendant of the command is alive: on Linux, orphans become
its children, so that no process leaves its family. It reads the command's environment, as JSON, from descriptor 4, and has none of it itself:
programs of the machine find each other by their environments, and this process is outside the machine.
"""

import ctypes
import json
import os
import signal
import sys

_REPORT = 3
_ENVIRONMENT = 4
_PR_SET_CHILD_SUBREAPER = 36


def main():
    if sys.platform.startswith("linux"):
        zero = ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), zero, zero, zero)
    with open(_ENVIRONMENT) as file:
        environment = json.load(file)
    child = os.fork()
    if child == 0:
        os.close(_REPORT)
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execve("/bin/sh", ["sh"] + sys.argv[1:], environment)
    # The caller's files belong to the command, not to this process.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.write(_REPORT, b"%d\n" % child)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return
        if pid == child:
            words = (os.WEXITSTATUS(status), 0) if os.WIFEXITED(status) else (0, os.WTERMSIG(status))
            os.write(_REPORT, b"%d %d\n" % words)
            os.close(_REPORT)


if __name__ == "__main__":
    main()
