"""A folder of a thousand small files for each save, as zarr arrays are."""

import glob
import os
import shutil

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
CHUNKS = 500


def load(folder):
    state = {"step": int(folder.rpartition("_")[2])}
    for name in ("model", "optimizer"):
        pieces = []
        for number in range(CHUNKS):
            with open(os.path.join(folder, name, "%d.0" % number), "rb") as file:
                pieces.append(file.read())
        state[name] = b"".join(pieces)
    return state


found = sorted(glob.glob(os.path.join(ROOT, "step_*")), key=lambda path: int(path.rpartition("_")[2]))
start = lab.go_on(load(found[-1])) if found else 0
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if step % (3 * lab.SAVE_EVERY) == 0:
        with lab.saving(step) as files:
            state = lab.state_at(step)
            folder = os.path.join(ROOT, "step_%d" % step)
            for name in ("model", "optimizer"):
                os.makedirs(os.path.join(folder, name), exist_ok=True)
                size = len(state[name]) // CHUNKS
                for number in range(CHUNKS):
                    path = os.path.join(folder, name, "%d.0" % number)
                    with open(path, "wb") as file:
                        file.write(state[name][number * size : (number + 1) * size])
                    files.append(path)
                lab.pause()
            for old in found[:-1]:
                shutil.rmtree(old)
            found = found[-1:] + [folder]
