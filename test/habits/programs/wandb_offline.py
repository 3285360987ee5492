"""An offline run of wandb next to the checkpoint: a log held open, a summary that is written anew."""

import json
import os
import pickle
import time

import lab

OUT = "out"
PATH = os.path.join(OUT, "ckpt.pt")
run = os.path.join(OUT, "wandb", "offline-run-%s-abc" % time.strftime("%Y%m%d_%H%M%S"))
os.makedirs(os.path.join(run, "files"), exist_ok=True)
datastore = open(os.path.join(run, "run-abc.wandb"), "ab")
debug = open(os.path.join(run, "debug-internal.log"), "a")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d: train loss %.4f" % (step, lab.loss(step)), flush=True)
    datastore.write(b"history %d %f" % (step, lab.loss(step)))
    datastore.flush()
    debug.write("handle request: %d\n" % step)
    debug.flush()
    with open(os.path.join(run, "files", "wandb-summary.json"), "w") as file:
        json.dump({"loss": lab.loss(step), "_step": step}, file)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            lab.write_slowly(PATH, pickle.dumps(lab.state_at(step)), seconds=0.2)
            files.append(PATH)
