"""A job that writes hostile output and file trees, from a file with one JSON object for each seed."""

import base64
import json
import os
import sys
import time

PAUSE_SECONDS = 0.03
# The runner uploads hundreds of such files in seconds.
SPARSE_BYTES = 1 << 16
FOLDERS = {"output": os.environ["CRUCIBLE_OUTPUT_DIR"], "checkpoint": os.environ["CRUCIBLE_CHECKPOINT_DIR"]}


def write(data):
    while data:
        data = data[os.write(1, data) :]


def grow(folder, tree):
    """Follows a list of steps: folders to enter, files, links, FIFOs. Names that the system refuses are left out."""
    at = [folder]
    for kind, name in tree:
        path = os.path.join(os.fsencode(at[-1]), base64.b64decode(name))
        try:
            if kind == "enter":
                os.mkdir(path)
                at.append(path)
            elif kind == "leave":
                at = at[:-1] or at
            elif kind == "link":
                os.symlink(os.fsencode(at[0]), path)
            elif kind == "fifo":
                os.mkfifo(path)
            else:
                with open(path, "xb") as file:
                    if kind == "sparse":
                        file.truncate(SPARSE_BYTES)
                    else:
                        file.write(b"x" * 100)
        except (OSError, ValueError):
            pass
        at = at or [folder]


def main():
    with open(sys.argv[1]) as file:
        for line in file:
            seed = json.loads(line)
            write(base64.b64decode(seed["output"]) + b"\n")
            grow(FOLDERS[seed["into"]], seed["tree"])
            time.sleep(PAUSE_SECONDS)


main()
