"""outputs/DATE/TIME/ for each start, with its config first; the newest last.ckpt of all is taken, by its time."""

import datetime
import glob
import os
import pickle

import lab

ROOT = "outputs"

found = sorted(glob.glob(os.path.join(ROOT, "*", "*", "checkpoints", "last.ckpt")), key=os.path.getmtime)
run = os.path.join(ROOT, datetime.datetime.now().strftime("%Y-%m-%d/%H-%M-%S"))
os.makedirs(os.path.join(run, ".hydra"), exist_ok=True)
os.makedirs(os.path.join(run, "checkpoints"), exist_ok=True)
with open(os.path.join(run, ".hydra", "config.yaml"), "w") as file:
    file.write("model:\n  size: 64\n")
log = open(os.path.join(run, "train.log"), "a")
start = 0
if found:
    with open(found[-1], "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    log.write("step %d loss %.3f\n" % (step, lab.loss(step)))
    log.flush()
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            path = os.path.join(run, "checkpoints", "last.ckpt")
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)), seconds=0.3)
            files.append(path)
