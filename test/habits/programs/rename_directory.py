"""A folder, filled under another name and renamed when it is whole."""

import glob
import os
import shutil

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def load(folder):
    state = {"step": int(folder.rpartition("_")[2])}
    for name in ("model", "optimizer"):
        with open(os.path.join(folder, name + ".bin"), "rb") as file:
            state[name] = file.read()
    return state


found = sorted(glob.glob(os.path.join(ROOT, "step_*")))
start = lab.go_on(load(found[-1])) if found else 0
for step in lab.train(start):
    print("[%d] train_loss=%.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            building = os.path.join(ROOT, "building")
            shutil.rmtree(building, ignore_errors=True)
            os.makedirs(building)
            for name in ("model", "optimizer"):
                with open(os.path.join(building, name + ".bin"), "wb") as file:
                    file.write(state[name])
                lab.pause()
            whole = os.path.join(ROOT, "step_%08d" % step)
            shutil.rmtree(whole, ignore_errors=True)
            os.rename(building, whole)
            files += [os.path.join(whole, name + ".bin") for name in ("model", "optimizer")]
