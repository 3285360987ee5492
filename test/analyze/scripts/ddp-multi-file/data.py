import torch
from torch.utils.data import Dataset


class RandomPairs(Dataset):
    def __init__(self, size):
        self.pairs = [(torch.rand(20), torch.rand(1)) for _ in range(size)]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]
