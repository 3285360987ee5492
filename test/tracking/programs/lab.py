"""What the programs of this folder have in common: 8 steps; the step of the last save is all that a training remembers."""

import os
import time

STEPS = 8
FOLDER = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def first_step():
    """The first step that is not in the restored checkpoint."""
    path = os.environ.get("CRUCIBLE_RESUME_FROM")
    if path is None:
        return 1
    with open(path) as file:
        return int(file.read()) + 1


def save(step):
    path = os.path.join(FOLDER, "step-%d.txt" % step)
    with open(path + ".tmp", "w") as file:
        file.write(str(step))
    os.rename(path + ".tmp", path)
    print("step %d/%d" % (step, STEPS), flush=True)


def wait_to_be_killed(step):
    """In the first attempt a training waits after half of its steps."""
    while os.environ["CRUCIBLE_ATTEMPT"] == "1" and step >= STEPS // 2:
        time.sleep(0.1)
