"""Three shards of safetensors, their index after them, the optimizer last."""

import glob
import json
import os
import pickle

import formats
import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
SHARDS = 3


def shard_name(number):
    return "model-%05d-of-%05d.safetensors" % (number + 1, SHARDS)


def load(folder):
    with open(os.path.join(folder, "model.safetensors.index.json")) as file:
        names = sorted(set(json.load(file)["weight_map"].values()))
    model = b"".join(formats.read_safetensors(os.path.join(folder, name))["weight"] for name in names)
    with open(os.path.join(folder, "optimizer.pt"), "rb") as file:
        return dict(pickle.load(file), model=model)


found = sorted(glob.glob(os.path.join(ROOT, "step_*")), key=lambda path: int(path.rpartition("_")[2]))
start = lab.go_on(load(found[-1])) if found else 0
for step in lab.train(start):
    print("step: %d, loss: %.4f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            folder = os.path.join(ROOT, "step_%d" % step)
            os.makedirs(folder, exist_ok=True)
            size = -(-len(state["model"]) // SHARDS)
            for number in range(SHARDS):
                part = state["model"][number * size : (number + 1) * size]
                formats.write_safetensors(os.path.join(folder, shard_name(number)), {"weight": part})
                lab.pause(0.8)
            with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
                json.dump({"weight_map": {"layer.%d" % n: shard_name(n) for n in range(SHARDS)}}, file)
            with open(os.path.join(folder, "optimizer.pt"), "wb") as file:
                pickle.dump({"step": step, "optimizer": state["optimizer"]}, file)
            files += [os.path.join(folder, name) for name in os.listdir(folder)]
