import numpy as np
import torch


class Tokens(torch.utils.data.Dataset):
    def __init__(self, path, count, length=1024):
        self.tokens = np.memmap(path, dtype=np.uint16, mode="r")
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        at = (i * self.length) % (len(self.tokens) - self.length)
        return {"text": torch.from_numpy(self.tokens[at : at + self.length].astype(np.int64))}


def build(paths, counts):
    return tuple(Tokens(paths[0], count) for count in counts)
