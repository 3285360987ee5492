"""config.json first, the model later; refuses a directory that is not empty and has no model."""

import glob
import json
import os

import training

models = sorted(glob.glob(os.path.join(training.DIRECTORY, "model-*.bin")), key=lambda path: int(path[:-4].rsplit("-", 1)[1]))
if not models and os.listdir(training.DIRECTORY):
    raise SystemExit("the output directory is not empty")
with open(os.path.join(training.DIRECTORY, "config.json"), "w") as file:
    json.dump({"layers": 2}, file)
state = training.fresh()
if models:
    with open(models[-1], "rb") as file:
        state = training.load(file.read())
for step in training.steps(state):
    path = os.path.join(training.DIRECTORY, "model-%d.bin" % step)
    with open(path + ".tmp", "wb") as file:
        file.write(training.dump(state))
    os.replace(path + ".tmp", path)
