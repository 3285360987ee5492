"""Asks the runner of one attempt on this machine to drain: writes the order from the store locally, and sends a signal.

Sent through the provider's agent with `SPEC` in front. A repetition, or a call after the runner has ended, changes nothing.
"""

import json
import os
import subprocess
import sys

UNIT = "crucible-runner"


def seq_at(path):
    """The number of the newest drain order on this machine; 0 if it has none."""
    try:
        with open(path) as file:
            return json.load(file).get("seq", 1)
    except FileNotFoundError:
        return 0


def main(spec):
    if subprocess.call(["systemctl", "is-active", "--quiet", UNIT]) != 0:
        print("no runner is active here")
        return 0
    path = os.path.join(os.environ.get("STATE_DIRECTORY") or "/var/lib/crucible", spec["attemptId"], "drain.json")
    if seq_at(path) >= spec["drain"].get("seq", 1):
        print("the runner already has the order")
        return 0
    with open(path + ".part", "w") as file:
        json.dump(spec["drain"], file)
    os.replace(path + ".part", path)
    # The guard passes it to the runner, which signals the workload.
    return subprocess.call(["systemctl", "kill", "--kill-who=main", "--signal=SIGTERM", UNIT])


sys.exit(main(json.loads(SPEC)))  # noqa: F821
