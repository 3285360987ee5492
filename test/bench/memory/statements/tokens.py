import torch
from torch.utils.data import Dataset


class RandomTokens(Dataset):
    def __init__(self, vocab_size, seq_length):
        self.tokens = torch.randint(vocab_size, (64, seq_length + 1))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, at):
        return self.tokens[at]
