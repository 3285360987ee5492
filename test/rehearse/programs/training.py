"""A pretended training: its loss follows from its weights, and these from the steps that made them."""

import json
import os
import sys
import time

STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.05"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "12"))
STEPS = int(os.environ.get("STEPS", "100000"))
DIRECTORY = os.environ.get("CRUCIBLE_CHECKPOINT_DIR", "checkpoints")
_PADDING = 20_000


def fresh():
    return {"step": 0, "weights": [8.0, 8.0, 8.0, 8.0], "momentum": 0.0}


def advance(state):
    """One step: the weights come nearer to 1, faster with momentum."""
    time.sleep(STEP_SECONDS)
    state["momentum"] = 0.5 * state["momentum"] + 0.01
    state["weights"] = [weight - state["momentum"] * (weight - 1) for weight in state["weights"]]
    state["step"] += 1


def loss(state):
    return sum((weight - 1) ** 2 for weight in state["weights"])


def dump(state):
    """As bytes, always of one size."""
    return json.dumps(state).encode().ljust(_PADDING)


def load(data):
    return json.loads(data.decode())


def steps(state):
    """The rest of the training. Yields where a save is due."""
    while state["step"] < STEPS:
        advance(state)
        print("step %d/%d loss %.5f" % (state["step"], STEPS, loss(state)), flush=True)
        if state["step"] % SAVE_EVERY == 0:
            yield state["step"]


sys.dont_write_bytecode = True
