"""Orbax where nothing can be renamed: N/ is filled in place, commit_success.txt comes last."""

import os

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
MARKER = "commit_success.txt"


def is_committed(name):
    return name.isdigit() and os.path.exists(os.path.join(ROOT, name, MARKER))


def load(step):
    state = {"step": step}
    for name in ("model", "optimizer"):
        with open(os.path.join(ROOT, str(step), name), "rb") as file:
            state[name] = file.read()
    return state


steps = sorted(int(name) for name in os.listdir(ROOT) if is_committed(name))
start = lab.go_on(load(steps[-1])) if steps else 0
for step in lab.train(start):
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            folder = os.path.join(ROOT, str(step))
            os.makedirs(folder, exist_ok=True)
            for name in ("model", "optimizer"):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(state[name])
                files.append(os.path.join(folder, name))
                lab.pause()
            with open(os.path.join(folder, MARKER), "w") as file:
                file.write("Checkpoint commit was successful")
