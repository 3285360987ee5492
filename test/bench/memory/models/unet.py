import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.GroupNorm(8, outputs),
        nn.SiLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.GroupNorm(8, outputs),
        nn.SiLU(),
    )


class UNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.down1 = double(1, width)
        self.down2 = double(width, 2 * width)
        self.pool = nn.MaxPool2d(2)
        self.middle = double(2 * width, 4 * width)
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.out1 = double(4 * width, 2 * width)
        self.up2 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out2 = double(2 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.middle(self.pool(b))
        c = self.out1(torch.cat([self.up1(c), b], dim=1))
        c = self.out2(torch.cat([self.up2(c), a], dim=1))
        return self.head(c)


data = TensorDataset(torch.randn(16, 1, 128, 128), torch.randint(0, 2, (16, 128, 128)))
net = UNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for epoch in range(5):
    for image, mask in DataLoader(data, batch_size=4):
        loss = nn.functional.cross_entropy(net(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
