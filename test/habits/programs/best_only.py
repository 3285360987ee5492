"""Only the best model is saved; as the loss falls, that is each time, under a name with the loss in it."""

import glob
import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def loss_of(path):
    return float(path[: -len(".ckpt")].rpartition("=")[2])


found = sorted(glob.glob(os.path.join(ROOT, "best-val_loss=*.ckpt")), key=loss_of)
start = 0
if found:
    with open(found[0], "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            path = os.path.join(ROOT, "best-val_loss=%.4f.ckpt" % lab.loss(step))
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)), seconds=0.4)
            files.append(path)
            for old in glob.glob(os.path.join(ROOT, "best-val_loss=*.ckpt")):
                if old != path:
                    os.remove(old)
