"""Orbax on a disk: N.orbax-checkpoint-tmp/ is filled and renamed to N/; the three newest stay."""

import os
import shutil

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def load(step):
    state = {"step": step}
    for name in ("model", "optimizer"):
        with open(os.path.join(ROOT, str(step), "default", name), "rb") as file:
            state[name] = file.read()
    return state


steps = sorted(int(name) for name in os.listdir(ROOT) if name.isdigit())
start = lab.go_on(load(steps[-1])) if steps else 0
for step in lab.train(start):
    print("step %d, loss %.4f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            building = os.path.join(ROOT, "%d.orbax-checkpoint-tmp" % step)
            shutil.rmtree(building, ignore_errors=True)
            os.makedirs(os.path.join(building, "default"))
            for name in ("model", "optimizer"):
                with open(os.path.join(building, "default", name), "wb") as file:
                    file.write(state[name])
                lab.pause(0.8)
            with open(os.path.join(building, "_CHECKPOINT_METADATA"), "w") as file:
                file.write("{}")
            os.rename(building, os.path.join(ROOT, str(step)))
            steps = sorted(int(name) for name in os.listdir(ROOT) if name.isdigit())
            for old in steps[:-3]:
                shutil.rmtree(os.path.join(ROOT, str(old)))
            files += [os.path.join(ROOT, str(step), "default", name) for name in ("model", "optimizer")]
