"""One file in two goes, closed in between; what is cut off cannot be loaded."""

import os
import time

import training

path = os.path.join(training.DIRECTORY, "model.bin")
state = training.fresh()
if os.path.exists(path):
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < len(training.dump(state)):
        raise SystemExit("model.bin is cut off")
    state = training.load(data)
for step in training.steps(state):
    data = training.dump(state)
    with open(path, "wb") as file:
        file.write(data[: len(data) // 2])
    time.sleep(0.5)
    with open(path, "ab") as file:
        file.write(data[len(data) // 2 :])
