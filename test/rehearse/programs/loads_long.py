"""Takes longer to load than several of its saves take. With SILENT it shows no step."""

import os
import sys
import time

import training

time.sleep(4)
if "SILENT" in os.environ:
    sys.stdout = open(os.devnull, "w")
path = os.path.join(training.DIRECTORY, "model.bin")
state = training.fresh()
if os.path.exists(path):
    with open(path, "rb") as file:
        state = training.load(file.read())
for step in training.steps(state):
    with open(path + ".tmp", "wb") as file:
        file.write(training.dump(state))
    os.replace(path + ".tmp", path)
