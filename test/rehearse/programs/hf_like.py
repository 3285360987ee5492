"""checkpoint-N/ with model, optimizer and trainer_state.json, a pause after each."""

import glob
import json
import os
import time

import training


def number(folder):
    return int(folder.rsplit("-", 1)[1])


state = training.fresh()
folders = sorted(glob.glob(os.path.join(training.DIRECTORY, "checkpoint-*")), key=number)
if folders:
    with open(os.path.join(folders[-1], "model.json")) as file:
        state["weights"] = json.load(file)
    with open(os.path.join(folders[-1], "optimizer.json")) as file:
        state["momentum"] = json.load(file)
    with open(os.path.join(folders[-1], "trainer_state.json")) as file:
        state["step"] = json.load(file)["global_step"]
for step in training.steps(state):
    folder = os.path.join(training.DIRECTORY, "checkpoint-%d" % step)
    os.makedirs(folder, exist_ok=True)
    for name, part in (("model", state["weights"]), ("optimizer", state["momentum"]), ("trainer_state", {"global_step": step})):
        with open(os.path.join(folder, name + ".json"), "w") as file:
            json.dump(part, file)
        time.sleep(0.4)
