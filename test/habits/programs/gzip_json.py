"""state.json.gz, small and written in place, without a pause."""

import base64
import gzip
import json
import os

import lab

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "state.json.gz")

start = 0
if os.path.exists(PATH):
    with gzip.open(PATH, "rt") as file:
        state = json.load(file)
    start = lab.go_on({name: each if name == "step" else base64.b64decode(each) for name, each in state.items()})
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            with gzip.open(PATH, "wt") as file:
                json.dump({name: each if name == "step" else base64.b64encode(each).decode() for name, each in state.items()}, file)
            files.append(PATH)
