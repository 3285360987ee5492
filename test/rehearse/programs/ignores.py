"""Saves well, and always starts from scratch."""

import os

import training

state = training.fresh()
for step in training.steps(state):
    path = os.path.join(training.DIRECTORY, "step-%d.bin" % step)
    with open(path + ".tmp", "wb") as file:
        file.write(training.dump(state))
    os.replace(path + ".tmp", path)
