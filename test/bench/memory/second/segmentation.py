import argparse

import torch
from torch import nn


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Gate(nn.Module):
    """Attention over a skip connection."""

    def __init__(self, channels):
        super().__init__()
        self.skip = nn.Conv2d(channels, channels // 2, 1)
        self.signal = nn.Conv2d(channels, channels // 2, 1)
        self.score = nn.Conv2d(channels // 2, 1, 1)

    def forward(self, skip, signal):
        return skip * torch.sigmoid(self.score(torch.relu(self.skip(skip) + self.signal(signal))))


class AttentionUNet(nn.Module):
    def __init__(self, channels=3, classes=5, base=24):
        super().__init__()
        widths = [base * 2**level for level in range(4)]
        self.downs = nn.ModuleList()
        previous = channels
        for width in widths:
            self.downs.append(double_conv(previous, width))
            previous = width
        self.pool = nn.MaxPool2d(2)
        self.ups, self.gates, self.merges = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for width in reversed(widths[:-1]):
            self.ups.append(nn.ConvTranspose2d(width * 2, width, 2, stride=2))
            self.gates.append(Gate(width))
            self.merges.append(double_conv(width * 2, width))
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        skips = []
        for level, down in enumerate(self.downs):
            x = down(x if level == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up, gate, merge in zip(self.ups, self.gates, self.merges):
            x = up(x)
            skip = gate(skips.pop(), x)
            x = merge(torch.cat([skip, x], dim=1))
        return self.head(x)


parser = argparse.ArgumentParser()
parser.add_argument("--crop", type=int, default=128)
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--epochs", type=int, default=40)
args = parser.parse_args()

images = torch.rand(32, 3, args.crop, args.crop)
masks = torch.randint(0, 5, (32, args.crop, args.crop))
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(images, masks), batch_size=args.batch_size, shuffle=True
)
model = AttentionUNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for epoch in range(args.epochs):
    for image, mask in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(image), mask)
        loss.backward()
        optimizer.step()
