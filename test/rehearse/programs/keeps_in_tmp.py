"""Saves well, but a part of its state is in a temporary folder that only its first machine has."""

import os
import tempfile

import training

path = os.path.join(training.DIRECTORY, "model.bin")
state = dict(training.fresh(), cache=tempfile.mkdtemp())
if os.path.exists(path):
    with open(path, "rb") as file:
        state = training.load(file.read())
for step in training.steps(state):
    with open(os.path.join(state["cache"], "part"), "a") as file:
        file.write("%d\n" % step)
    with open(path + ".tmp", "wb") as file:
        file.write(training.dump(state))
    os.replace(path + ".tmp", path)
