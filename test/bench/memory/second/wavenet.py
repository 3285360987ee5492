import torch
import torch.nn as nn


class GatedLayer(nn.Module):
    def __init__(self, channels, skip_channels, dilation):
        super().__init__()
        self.pad = dilation
        self.filter = nn.Conv1d(channels, channels, 2, dilation=dilation)
        self.gate = nn.Conv1d(channels, channels, 2, dilation=dilation)
        self.residual = nn.Conv1d(channels, channels, 1)
        self.skip = nn.Conv1d(channels, skip_channels, 1)

    def forward(self, x):
        padded = nn.functional.pad(x, (self.pad, 0))
        z = torch.tanh(self.filter(padded)) * torch.sigmoid(self.gate(padded))
        return x + self.residual(z), self.skip(z)


class WaveNet(nn.Module):
    def __init__(self, levels=256, channels=32, skip_channels=64, layers=8, stacks=2):
        super().__init__()
        self.inlet = nn.Conv1d(levels, channels, 1)
        self.layers = nn.ModuleList(
            [GatedLayer(channels, skip_channels, 2**i) for _ in range(stacks) for i in range(layers)]
        )
        self.out1 = nn.Conv1d(skip_channels, skip_channels, 1)
        self.out2 = nn.Conv1d(skip_channels, levels, 1)

    def forward(self, x):
        x = self.inlet(x)
        total = 0
        for layer in self.layers:
            x, skip = layer(x)
            total = total + skip
        return self.out2(torch.relu(self.out1(torch.relu(total))))


LENGTH = 4096
model = WaveNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(500):
    samples = torch.randint(0, 256, (4, LENGTH + 1))
    inputs = nn.functional.one_hot(samples[:, :-1], 256).float().transpose(1, 2)
    loss = nn.functional.cross_entropy(model(inputs), samples[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
