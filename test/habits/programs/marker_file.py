"""N/ is filled, and an empty file N/done comes last; a start takes the newest with one."""

import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]

steps = [int(name) for name in os.listdir(ROOT) if os.path.exists(os.path.join(ROOT, name, "done"))]
start = 0
if steps:
    folder = os.path.join(ROOT, str(max(steps)))
    state = {"step": max(steps)}
    for name in ("model", "optimizer"):
        with open(os.path.join(folder, name), "rb") as file:
            state[name] = pickle.load(file)
    start = lab.go_on(state)
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            folder = os.path.join(ROOT, str(step))
            os.makedirs(folder, exist_ok=True)
            for name in ("model", "optimizer"):
                with open(os.path.join(folder, name), "wb") as file:
                    pickle.dump(state[name], file)
                files.append(os.path.join(folder, name))
                lab.pause()
            open(os.path.join(folder, "done"), "w").close()
