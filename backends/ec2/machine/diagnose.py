"""Reports what a machine knows about the runner of one attempt, for people: `{"text", "last"}`. Changes nothing.

Sent through the provider's agent with `SPEC` in front. Of other programs' output, only the journal of our own units is shown.
"""

import json
import os
import subprocess

UNITS = ("crucible-runner", "crucible-dead-man")
LINES = 40
# Limit well below the provider's limit for an answer.
CHARS_MAX = 12000
SECONDS = 5


def main(spec):
    root = os.path.join(os.environ.get("STATE_DIRECTORY") or "/var/lib/crucible", spec["attemptId"])
    log = tail(os.path.join(root, "runner.log"))
    parts = [("up", system()), ("units", said(["systemctl", "--no-pager", "--lines=%d" % LINES, "status"] + list(UNITS)))]
    parts += [("journal of " + unit, said(["journalctl", "--no-pager", "-b", "-n", str(LINES), "-u", unit])) for unit in UNITS]
    parts.append(("the runner's own log", log))
    text = "\n\n".join("## %s\n%s" % (title, words.strip() or "nothing") for title, words in parts if words is not None)
    lines = [line for line in (log or "").splitlines() if line.strip()]
    print(json.dumps({"text": text[-CHARS_MAX:], "last": lines[-1][-500:] if lines else None}))


def system():
    with open("/proc/uptime") as file:
        seconds = float(file.read().split()[0])
    with open("/proc/meminfo") as file:
        memory = " ".join(line.strip() for line in file if line.startswith(("MemTotal", "MemAvailable")))
    disk = os.statvfs("/")
    free = (seconds, os.getloadavg()[0], memory, disk.f_bavail * disk.f_frsize // 2**20)
    return "for %d s, load %.1f, %s, %d MiB of disk free" % free


def said(command):
    """Output of a program; None if the program does not exist."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired:
        return "no answer within %d s" % SECONDS
    return done.stdout.decode("utf-8", "replace")


def tail(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-LINES:])
    except OSError as error:
        return "cannot be read: %s" % error.strerror


main(json.loads(SPEC))  # noqa: F821
