"""model.pt, optimizer.pt, scheduler.pt and rng.pt, overwritten in place one after the other without a pause."""

import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
NAMES = ("model", "optimizer", "scheduler", "rng")


def path_of(name):
    return os.path.join(ROOT, name + ".pt")


def load():
    parts = {}
    for name in NAMES:
        with open(path_of(name), "rb") as file:
            parts[name] = pickle.load(file)
    return {"step": parts["rng"], "model": parts["model"], "optimizer": parts["optimizer"]}


start = lab.go_on(load()) if os.path.exists(path_of("model")) else 0
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            for name in NAMES:
                with open(path_of(name), "wb") as file:
                    pickle.dump(state.get(name, step), file)
                files.append(path_of(name))
