"""No handler for SIGTERM; the next save is due within most notices."""

import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
PATH = os.path.join(ROOT, "ckpt.pt")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if step % 8 == 0:
        with lab.saving(step) as files:
            with open(PATH + ".tmp", "wb") as file:
                pickle.dump(lab.state_at(step), file)
            os.replace(PATH + ".tmp", PATH)
            files.append(PATH)
