"""Moves one file to the store and back as the runner does with a checkpoint, and prints the peak of its memory in KiB.

checkpoint_runner.py up|down URL KEY FILE ENTRY: `ENTRY` is a file for what a manifest says of the file.
"""

import json
import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner"))

from crucible_runner.store.opening import open_store  # noqa: E402
from crucible_runner.store.transfer import FileDown, FileUp, transfer_files  # noqa: E402


def main(direction, url, key, path, entry_path):
    store = open_store(url)
    if direction == "up":
        file = FileUp(store, key, path, os.path.getsize(path))
        transfer_files([file], lambda: False)
        entry = {"path": "file", "sizeBytes": file.size, "parts": file.parts(), "digest": file.digest(), "mode": 0o644}
        with open(entry_path, "w") as target:
            json.dump(entry, target)
    else:
        with open(entry_path) as source:
            entry = json.load(source)
        transfer_files([FileDown(store, key, path, entry)], lambda: False)
    print(peak_kib())


def peak_kib():
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    except FileNotFoundError:
        # On Linux this counts the process that started it, too.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


main(*sys.argv[1:])
