import numpy as np
import torch
from torch.utils.data import Dataset


class Interactions(Dataset):
    def __init__(self, root):
        pairs = np.load(f"{root}/pairs.npy")
        self.pairs = torch.from_numpy(pairs)
        self.users = int(pairs[:, 0].max()) + 1
        self.items = int(pairs[:, 1].max()) + 1

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, at):
        return self.pairs[at, 0], self.pairs[at, 1]
