"""What the programs of this folder have in common."""

import os
import time

OUTPUT = os.environ["CRUCIBLE_OUTPUT_DIR"]
EPOCHS = 3
STEPS_OF_EPOCH = 6
SAVE_EVERY = 4


def hold(step):
    """The first attempt of a program that is to be interrupted waits in step HOLD until it is asked to stop, or killed."""
    if os.environ["CRUCIBLE_ATTEMPT"] != "1" or str(step) != os.environ.get("HOLD"):
        return
    print("holding", flush=True)
    while not os.path.exists(os.path.join(os.environ["CRUCIBLE_CONTROL_DIR"], "stop.json")):
        time.sleep(0.05)
