"""`main.py FIRST COUNT`: runs the cases with these seeds, and prints one JSON object a line: `{"thinOut": ...}` asks what the
control plane would delete, `{"bad": ...}` is a bad resume, `{"done": ...}` comes last."""

import json
import os
import shutil
import sys
import tempfile
import traceback

import small_parts  # noqa: F401
from case import Broken, Case


# A folder in memory, where the system has one: disks may take milliseconds to remove a folder.
MEMORY = "/dev/shm"


def say(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def thin_out(question):
    say({"thinOut": question})
    return json.loads(sys.stdin.readline())


def main(first, count):
    total = {}
    for seed in range(first, first + count):
        folder = tempfile.mkdtemp(prefix="crucible-torn-", dir=MEMORY if os.path.isdir(MEMORY) else None)
        try:
            for what, times in Case(seed, folder, thin_out).run().items():
                total[what] = total.get(what, 0) + times
        except (Exception, Broken):
            say({"bad": {"seed": seed, "words": traceback.format_exc()}})
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    say({"done": total})


main(*map(int, sys.argv[1:3]))
