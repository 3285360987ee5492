"""Prints the iteration of a checkpoint and a digest of its weights and of the optimizer's memory: compare.py CKPT."""

import hashlib
import sys

import torch

checkpoint = torch.load(sys.argv[1], map_location="cpu")
digest = hashlib.sha256()


def take(value):
    if isinstance(value, torch.Tensor):
        digest.update(("%s %s" % (value.dtype, tuple(value.shape))).encode() + value.contiguous().numpy().tobytes())
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            digest.update(str(key).encode())
            take(value[key])
    else:
        digest.update(repr(value).encode())


for part in ("model", "optimizer"):
    take(checkpoint[part])
print("iteration %d, weights and optimizer %s" % (checkpoint["iter_num"], digest.hexdigest()))
