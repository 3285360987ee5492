import numpy as np
import torch


class TokenStream(torch.utils.data.Dataset):
    def __init__(self, path):
        self.data = np.memmap(path, dtype=np.uint16)

    def __len__(self):
        return len(self.data) // 1024

    def __getitem__(self, i):
        return torch.from_numpy(self.data[i * 1024 : (i + 1) * 1024].astype(np.int64))


class GPT(torch.nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(width, 16) for _ in range(layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.mean()
