"""model_epoch_N.pth; the log speaks of steps."""

import glob
import os
import pickle
import re

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def epoch_of(path):
    return int(re.search(r"epoch_(\d+)", path).group(1))


found = sorted(glob.glob(os.path.join(ROOT, "model_epoch_*.pth")), key=epoch_of)
start = 0
if found:
    with open(found[-1], "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("epoch %d step %d loss %.3f" % (step // lab.SAVE_EVERY, step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            path = os.path.join(ROOT, "model_epoch_%d.pth" % (step // lab.SAVE_EVERY))
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)), seconds=0.4)
            files.append(path)
