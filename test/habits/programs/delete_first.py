"""The old model-N.pt is deleted before the new one is written."""

import glob
import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]

found = glob.glob(os.path.join(ROOT, "model-*.pt"))
start = 0
if found:
    with open(found[0], "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            for old in glob.glob(os.path.join(ROOT, "model-*.pt")):
                os.remove(old)
            lab.pause()
            path = os.path.join(ROOT, "model-%d.pt" % step)
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)))
            files.append(path)
