"""A start moves the checkpoint that it continues from into a folder of its own, and saves next to it."""

import os
import pickle
import shutil

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
PATH, OLD = os.path.join(ROOT, "last.ckpt"), os.path.join(ROOT, "resumed_from", "last.ckpt")

os.makedirs(os.path.dirname(OLD), exist_ok=True)
if os.path.exists(PATH):
    shutil.move(PATH, OLD)
start = 0
if os.path.exists(OLD):
    with open(OLD, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            with open(PATH + ".part", "wb") as file:
                pickle.dump(lab.state_at(step), file)
            os.replace(PATH + ".part", PATH)
            files.append(PATH)
