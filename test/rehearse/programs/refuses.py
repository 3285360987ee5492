"""Saves well, and refuses to start in a directory that is not empty."""

import os

import training

if os.listdir(training.DIRECTORY):
    raise SystemExit("the output directory is not empty")
for step in training.steps(state := training.fresh()):
    path = os.path.join(training.DIRECTORY, "step-%d.bin" % step)
    with open(path + ".tmp", "wb") as file:
        file.write(training.dump(state))
    os.replace(path + ".tmp", path)
