import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def timestep_embedding(steps, width):
    frequencies = torch.exp(-math.log(10000) * torch.arange(width // 2) / (width // 2))
    angles = steps[:, None] * frequencies[None]
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, inputs, outputs, time_width):
        super().__init__()
        self.norm1 = nn.GroupNorm(8, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time_width, outputs)
        self.norm2 = nn.GroupNorm(8, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(time))[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.skip(x)


class SelfAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.qkv = nn.Conv2d(channels, channels * 3, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, c, h * w).unbind(1)
        weights = torch.softmax(q.transpose(1, 2) @ k / math.sqrt(c), dim=-1)
        y = (v @ weights.transpose(1, 2)).reshape(b, c, h, w)
        return x + self.out(y)


class Denoiser(nn.Module):
    def __init__(self, channels=3, base=48, time_width=192):
        super().__init__()
        self.base = base
        self.time = nn.Sequential(nn.Linear(base, time_width), nn.SiLU(), nn.Linear(time_width, time_width))
        self.inlet = nn.Conv2d(channels, base, 3, padding=1)
        self.down1 = ResBlock(base, base, time_width)
        self.shrink1 = nn.Conv2d(base, base * 2, 3, stride=2, padding=1)
        self.down2 = ResBlock(base * 2, base * 2, time_width)
        self.shrink2 = nn.Conv2d(base * 2, base * 4, 3, stride=2, padding=1)
        self.middle1 = ResBlock(base * 4, base * 4, time_width)
        self.attention = SelfAttention(base * 4)
        self.middle2 = ResBlock(base * 4, base * 4, time_width)
        self.grow1 = nn.ConvTranspose2d(base * 4, base * 2, 4, stride=2, padding=1)
        self.up1 = ResBlock(base * 4, base * 2, time_width)
        self.grow2 = nn.ConvTranspose2d(base * 2, base, 4, stride=2, padding=1)
        self.up2 = ResBlock(base * 2, base, time_width)
        self.outlet = nn.Sequential(nn.GroupNorm(8, base), nn.SiLU(), nn.Conv2d(base, channels, 3, padding=1))

    def forward(self, x, steps):
        time = self.time(timestep_embedding(steps, self.base))
        first = self.down1(self.inlet(x), time)
        second = self.down2(self.shrink1(first), time)
        h = self.middle1(self.shrink2(second), time)
        h = self.middle2(self.attention(h), time)
        h = self.up1(torch.cat([self.grow1(h), second], dim=1), time)
        h = self.up2(torch.cat([self.grow2(h), first], dim=1), time)
        return self.outlet(h)


STEPS = 1000
noise_levels = torch.cumprod(1 - torch.linspace(1e-4, 0.02, STEPS), dim=0)
dataset = torch.utils.data.TensorDataset(torch.rand(128, 3, 32, 32) * 2 - 1)
loader = torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True)
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
for epoch in range(200):
    for (clean,) in loader:
        steps = torch.randint(0, STEPS, (clean.shape[0],))
        level = noise_levels[steps][:, None, None, None]
        noise = torch.randn_like(clean)
        noisy = level.sqrt() * clean + (1 - level).sqrt() * noise
        loss = F.mse_loss(model(noisy, steps), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
