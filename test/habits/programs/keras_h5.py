"""weights.EPOCH-LOSS.h5, written in place; all of them stay."""

import glob
import os
import pickle
import re

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def epoch_of(path):
    return int(re.search(r"weights\.(\d+)-", path).group(1))


found = sorted(glob.glob(os.path.join(ROOT, "weights.*.h5")), key=epoch_of)
start = 0
if found:
    with open(found[-1], "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    if lab.is_save_due(step):
        epoch = step // lab.SAVE_EVERY
        print("Epoch %d/50 - loss: %.4f" % (epoch, lab.loss(step)), flush=True)
        with lab.saving(step) as files:
            path = os.path.join(ROOT, "weights.%02d-%.2f.h5" % (epoch, lab.loss(step)))
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)), seconds=0.8)
            files.append(path)
