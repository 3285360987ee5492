import torch
from torch.utils.data import Dataset


class TextMelLoader(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.rows = [line.strip().split("|") for line in f]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        mel, text = self.rows[index]
        return torch.tensor([ord(c) for c in text]), torch.load(mel)


class TextMelCollate:
    def __call__(self, batch):
        texts = torch.nn.utils.rnn.pad_sequence([t for t, _ in batch], batch_first=True)
        mels = torch.nn.utils.rnn.pad_sequence([m for _, m in batch], batch_first=True)
        return texts, mels
