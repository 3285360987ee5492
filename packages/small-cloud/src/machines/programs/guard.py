"""Ends all processes of a machine when the simulator is gone: `guard.py NAME=value` reads standard input from the simulator.

Each line `PID STARTED` names a process of the machine; `off` means that no process is left to end.
"""

import os
import signal
import subprocess
import sys
import time

_ROUNDS = 50
_PAUSE_SECONDS = 0.1
_IS_LINUX = sys.platform.startswith("linux")


def main():
    mark = sys.argv[1]
    known = set()
    for line in sys.stdin:
        if line.strip() == "off":
            return
        pid, _, started = line.strip().partition(" ")
        known.add((int(pid), started))
    for _ in range(_ROUNDS):
        table = _table_of_proc(mark) if _IS_LINUX else _table_of_ps(mark)
        found = {pid for pid, row in table.items() if row["marked"] or (pid, row["started"]) in known}
        before = -1
        while before != len(found):
            before = len(found)
            found |= {pid for pid, row in table.items() if row["parent"] in found or row["session"] in found}
        found.discard(os.getpid())
        if not found:
            return
        for pid in found:
            known.add((pid, table[pid]["started"]))
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(_PAUSE_SECONDS)


def _table_of_proc(mark):
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] in (b"Z", b"X"):
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                is_marked = mark.encode() in file.read().split(b"\0")
        except OSError:
            is_marked = False
        table[int(name)] = {
            "parent": int(fields[1]),
            "session": int(fields[3]),
            "started": fields[19].decode(),
            "marked": is_marked,
        }
    return table


def _table_of_ps(mark):
    table = {}
    for line in _ps("-axo", "pid=,ppid=,pgid=,stat=,lstart="):
        fields = line.split(None, 4)
        if len(fields) == 5 and not fields[3].startswith("Z"):
            table[int(fields[0])] = {
                "parent": int(fields[1]),
                "session": int(fields[2]),
                "started": fields[4].strip(),
                "marked": False,
            }
    for line in _ps("-axEwwo", "pid=,command="):
        words = line.split()
        if words and mark in words[1:] and int(words[0]) in table:
            table[int(words[0])]["marked"] = True
    return table


def _ps(*arguments):
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    answer = subprocess.run(("/bin/ps",) + arguments, stdout=subprocess.PIPE, check=False, env=environment)
    return answer.stdout.decode("utf-8", "replace").splitlines()


if __name__ == "__main__":
    main()
