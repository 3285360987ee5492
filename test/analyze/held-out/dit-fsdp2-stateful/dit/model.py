import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.n2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class DiT(nn.Module):
    def __init__(self, dim, depth, heads):
        super().__init__()
        self.inp = nn.Linear(16, dim)
        self.label = nn.Embedding(1000, dim)
        self.time = nn.Sequential(nn.Linear(1, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.out = nn.Linear(dim, 16)

    def forward(self, x, t, y):
        h = self.inp(x) + (self.time(t[:, None]) + self.label(y))[:, None]
        for b in self.blocks:
            h = b(h)
        return self.out(h)
