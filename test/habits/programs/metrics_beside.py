"""metrics.json is written anew every few steps next to the model."""

import json
import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
MODEL = os.path.join(ROOT, "model.pt")
METRICS = os.path.join(ROOT, "metrics.json")

start, history = 0, []
if os.path.exists(MODEL):
    with open(MODEL, "rb") as file:
        start = lab.go_on(pickle.load(file))
    with open(METRICS) as file:
        history = json.load(file)
for step in lab.train(start):
    print("Step %d | loss %.3f" % (step, lab.loss(step)), flush=True)
    if step % 3 == 0:
        history.append({"step": step, "loss": lab.loss(step)})
        with open(METRICS, "w") as file:
            json.dump(history, file)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            with open(MODEL + ".new", "wb") as file:
                pickle.dump(lab.state_at(step), file)
            os.rename(MODEL + ".new", MODEL)
            files.append(MODEL)
