"""checkpoint-N/ folders, and a link `latest` that is moved to the newest when it is whole."""

import os

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
LATEST = os.path.join(ROOT, "latest")


def load():
    state = {"step": int(os.path.realpath(LATEST).rpartition("-")[2])}
    for name in ("model", "optimizer"):
        with open(os.path.join(LATEST, name + ".pt"), "rb") as file:
            state[name] = file.read()
    return state


start = lab.go_on(load()) if os.path.exists(LATEST) else 0
for step in lab.train(start):
    print("step %d | loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            folder = os.path.join(ROOT, "checkpoint-%d" % step)
            os.makedirs(folder, exist_ok=True)
            for name in ("model", "optimizer"):
                with open(os.path.join(folder, name + ".pt"), "wb") as file:
                    file.write(state[name])
                files.append(os.path.join(folder, name + ".pt"))
                lab.pause()
            if os.path.lexists(LATEST):
                os.remove(LATEST)
            os.symlink("checkpoint-%d" % step, LATEST)
