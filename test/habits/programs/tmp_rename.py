"""One file, written next to its place and renamed into it."""

import os
import pickle

import lab

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "ckpt.pt")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("iter %d: loss %.4f, time 140.00ms" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            lab.write_slowly(PATH + ".tmp", pickle.dumps(lab.state_at(step)))
            os.replace(PATH + ".tmp", PATH)
            files.append(PATH)
