"""A small denoiser for waveforms."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.proj = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half) / half)
        args = t[:, None] * freqs[None]
        return self.proj(torch.cat([args.sin(), args.cos()], dim=-1))


class ResBlock(nn.Module):
    def __init__(self, ch, out_ch, emb):
        super().__init__()
        self.norm1 = nn.GroupNorm(8, ch)
        self.conv1 = nn.Conv1d(ch, out_ch, 3, padding=1)
        self.emb = nn.Linear(emb, out_ch)
        self.norm2 = nn.GroupNorm(8, out_ch)
        self.conv2 = nn.Conv1d(out_ch, out_ch, 3, padding=1)
        self.skip = nn.Conv1d(ch, out_ch, 1) if ch != out_ch else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.emb(emb)[:, :, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return self.skip(x) + h


class Denoiser(nn.Module):
    def __init__(self, width=64, emb=128):
        super().__init__()
        self.time = TimeEmbedding(emb)
        self.inp = nn.Conv1d(1, width, 7, padding=3)
        self.down1 = ResBlock(width, width, emb)
        self.pool1 = nn.Conv1d(width, 2 * width, 4, stride=2, padding=1)
        self.down2 = ResBlock(2 * width, 2 * width, emb)
        self.pool2 = nn.Conv1d(2 * width, 4 * width, 4, stride=2, padding=1)
        self.mid = ResBlock(4 * width, 4 * width, emb)
        self.up2 = nn.ConvTranspose1d(4 * width, 2 * width, 4, stride=2, padding=1)
        self.dec2 = ResBlock(4 * width, 2 * width, emb)
        self.up1 = nn.ConvTranspose1d(2 * width, width, 4, stride=2, padding=1)
        self.dec1 = ResBlock(2 * width, width, emb)
        self.out = nn.Conv1d(width, 1, 3, padding=1)

    def forward(self, x, t):
        emb = self.time(t)
        a = self.down1(self.inp(x), emb)
        b = self.down2(self.pool1(a), emb)
        h = self.mid(self.pool2(b), emb)
        h = self.dec2(torch.cat([self.up2(h), b], 1), emb)
        h = self.dec1(torch.cat([self.up1(h), a], 1), emb)
        return self.out(h)


BATCH = 8
model = Denoiser()
optim = torch.optim.AdamW(model.parameters(), lr=2e-4)
for step in range(50_000):
    x0 = torch.randn(BATCH, 1, 2048)
    t = torch.rand(BATCH)
    noise = torch.randn_like(x0)
    alpha = torch.cos(t * math.pi / 2)[:, None, None]
    xt = alpha * x0 + (1 - alpha**2).sqrt() * noise
    loss = F.mse_loss(model(xt, t), noise)
    optim.zero_grad()
    loss.backward()
    optim.step()
