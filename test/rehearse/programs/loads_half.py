"""Saves weights and step, and loads the step only: nothing complains."""

import os

import training

path = os.path.join(training.DIRECTORY, "model.bin")
state = training.fresh()
if os.path.exists(path):
    with open(path, "rb") as file:
        state["step"] = training.load(file.read())["step"]
for step in training.steps(state):
    with open(path + ".tmp", "wb") as file:
        file.write(training.dump(state))
    os.replace(path + ".tmp", path)
