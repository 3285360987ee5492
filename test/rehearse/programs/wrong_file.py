"""Saves step-N.bin, and loads the first by name, which is the oldest."""

import glob
import os

import training

files = sorted(glob.glob(os.path.join(training.DIRECTORY, "step-*.bin")))
state = training.fresh()
if files:
    with open(files[0], "rb") as file:
        state = training.load(file.read())
for step in training.steps(state):
    path = os.path.join(training.DIRECTORY, "step-%04d.bin" % step)
    with open(path + ".tmp", "wb") as file:
        file.write(training.dump(state))
    os.replace(path + ".tmp", path)
