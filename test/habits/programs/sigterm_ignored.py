"""SIGTERM is ignored; saves come when they come."""

import os
import pickle
import signal

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
PATH = os.path.join(ROOT, "weights.bin")
signal.signal(signal.SIGTERM, signal.SIG_IGN)

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            lab.write_slowly(PATH, pickle.dumps(lab.state_at(step)), seconds=0.4)
            files.append(PATH)
