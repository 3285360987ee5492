"""Whether two files hold the same values, bit for bit: `compare.py ONE OTHER`. Prints the first difference."""

import pickle
import sys


def load(path):
    if path.endswith(".pt"):
        import torch

        return torch.load(path, map_location="cpu")
    if path.endswith((".npy", ".npz")):
        import numpy

        loaded = numpy.load(path)
        return loaded if path.endswith(".npy") else {name: loaded[name] for name in loaded.files}
    if path.endswith((".pkl", ".pickle")):
        with open(path, "rb") as file:
            return pickle.load(file)
    if path.endswith(".safetensors"):
        from safetensors.numpy import load_file

        return load_file(path)
    with open(path, "rb") as file:
        return file.read()


def difference(one, other, place="value"):
    if type(one) is not type(other):
        return "%s: %s and %s" % (place, type(one), type(other))
    if isinstance(one, dict):
        if list(one) != list(other):
            return "%s: keys %s and %s" % (place, list(one), list(other))
        found = (difference(one[key], other[key], "%s[%r]" % (place, key)) for key in one)
        return next((each for each in found if each), None)
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return "%s: %d and %d items" % (place, len(one), len(other))
        found = (difference(a, b, "%s[%d]" % (place, at)) for at, (a, b) in enumerate(zip(one, other)))
        return next((each for each in found if each), None)
    if hasattr(one, "detach"):
        one, other = one.detach().numpy(), other.detach().numpy()
    if hasattr(one, "tobytes"):
        same = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    else:
        same = one == other
    return None if same else "%s differs" % place


found = difference(load(sys.argv[1]), load(sys.argv[2]))
if found:
    print(found)
    sys.exit(1)
