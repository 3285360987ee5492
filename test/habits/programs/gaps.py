"""Saves come at the powers of two, and so ever more seldom."""

import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def is_save_due(step):
    return step >= 8 and step & (step - 1) == 0 or step % 64 == 0


found = sorted(name for name in os.listdir(ROOT) if name.startswith("snapshot-"))
start = 0
if found:
    with open(os.path.join(ROOT, found[-1]), "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if is_save_due(step):
        with lab.saving(step) as files:
            path = os.path.join(ROOT, "snapshot-%05d.bin" % step)
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)), seconds=0.3)
            files.append(path)
