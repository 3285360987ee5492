"""Writes next to the place and renames."""

import os

import training

path = os.path.join(training.DIRECTORY, "model.bin")
state = training.fresh()
if os.path.exists(path):
    with open(path, "rb") as file:
        state = training.load(file.read())
for step in training.steps(state):
    with open(path + ".tmp", "wb") as file:
        file.write(training.dump(state))
    os.replace(path + ".tmp", path)
with open(os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], "final.json"), "wb") as file:
    file.write(training.dump(state))
