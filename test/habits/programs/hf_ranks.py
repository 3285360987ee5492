"""Two processes save: rank 0 has written `trainer_state.json` while rank 1 still writes its random state."""

import json
import os
import pickle
import re

import lab

OUTPUT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
RANKS = 2


def last_checkpoint():
    names = [name for name in os.listdir(OUTPUT) if re.fullmatch(r"checkpoint-\d+", name)]
    return os.path.join(OUTPUT, max(names, key=lambda name: int(name.split("-")[1]))) if names else None


def load(folder):
    with open(os.path.join(folder, "trainer_state.json")) as file:
        step = json.load(file)["global_step"]
    state = {"step": step}
    for rank, part in enumerate(("model", "optimizer")):
        with open(os.path.join(folder, "rng_state_%d.pth" % rank), "rb") as file:
            state[part] = pickle.load(file)
    return state


def save(step, files):
    state = lab.state_at(step)
    folder = os.path.join(OUTPUT, "checkpoint-%d" % step)
    os.makedirs(folder, exist_ok=True)
    parts = {"rng_state_0.pth": pickle.dumps(state["model"]), "trainer_state.json": json.dumps({"global_step": step}).encode()}
    for name, body in parts.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(body)
    lab.pause(2)
    parts["rng_state_1.pth"] = pickle.dumps(state["optimizer"])
    with open(os.path.join(folder, "rng_state_1.pth"), "wb") as file:
        file.write(parts["rng_state_1.pth"])
    files += [os.path.join(folder, name) for name in parts]


checkpoint = last_checkpoint()
start = lab.go_on(load(checkpoint)) if checkpoint else 0
for step in lab.train(start):
    print({"loss": round(lab.loss(step), 4), "epoch": step / 100}, flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            save(step, files)
