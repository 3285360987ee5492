"""Saves last.bin each time and best.bin now and then, and resumes from best.bin."""

import os

import training


def path(name):
    return os.path.join(training.DIRECTORY, name)


state = training.fresh()
if os.path.exists(path("best.bin")):
    with open(path("best.bin"), "rb") as file:
        state = training.load(file.read())
for step in training.steps(state):
    is_best = step // training.SAVE_EVERY % 4 == 1
    for name in ["best.bin", "last.bin"] if is_best else ["last.bin"]:
        with open(path(name) + ".tmp", "wb") as file:
            file.write(training.dump(state))
        os.replace(path(name) + ".tmp", path(name))
