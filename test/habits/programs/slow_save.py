"""A save takes longer than the time between two: a thread writes while the training continues."""

import glob
import os
import pickle
import threading

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def save(step):
    with lab.saving(step) as files:
        folder = os.path.join(ROOT, "step-%d" % step)
        os.makedirs(folder, exist_ok=True)
        state = lab.state_at(step)
        for name in ("model", "optimizer"):
            path = os.path.join(folder, name + ".pt")
            lab.write_slowly(path, pickle.dumps((step, state[name])), seconds=1.3)
            files.append(path)


def load(folder):
    state = {}
    for name in ("model", "optimizer"):
        with open(os.path.join(folder, name + ".pt"), "rb") as file:
            state["step"], state[name] = pickle.load(file)
    return state


found = sorted(glob.glob(os.path.join(ROOT, "step-*")), key=lambda path: int(path.rpartition("-")[2]))
start = lab.go_on(load(found[-1])) if found else 0
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        threading.Thread(target=save, args=(step,)).start()
