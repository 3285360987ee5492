import os

import torch


def take(path, epoch, *parts):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    tmp = path + ".tmp"
    torch.save({"epoch": epoch, "parts": [p.state_dict() for p in parts]}, tmp)
    os.replace(tmp, path)


def restore(path, gpu, *parts):
    if not os.path.exists(path):
        return 0
    snap = torch.load(path, map_location=f"cuda:{gpu}")
    for part, state in zip(parts, snap["parts"]):
        part.load_state_dict(state)
    return snap["epoch"] + 1
