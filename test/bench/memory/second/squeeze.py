import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction=8):
        super().__init__()
        self.down = nn.Conv2d(channels, channels // reduction, 1)
        self.up = nn.Conv2d(channels // reduction, channels, 1)

    def forward(self, x):
        scale = F.adaptive_avg_pool2d(x, 1)
        scale = torch.sigmoid(self.up(F.relu(self.down(scale))))
        return x * scale


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.expand = nn.Conv2d(inputs, inputs * 4, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inputs * 4)
        self.depthwise = nn.Conv2d(inputs * 4, inputs * 4, 3, stride, 1, groups=inputs * 4, bias=False)
        self.bn2 = nn.BatchNorm2d(inputs * 4)
        self.se = SqueezeExcite(inputs * 4)
        self.project = nn.Conv2d(inputs * 4, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.has_skip = stride == 1 and inputs == outputs

    def forward(self, x):
        y = F.hardswish(self.bn1(self.expand(x)))
        y = F.hardswish(self.bn2(self.depthwise(y)))
        y = self.bn3(self.project(self.se(y)))
        return x + y if self.has_skip else y


class Net(nn.Module):
    SETTINGS = [(24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1)]

    def __init__(self, classes=100):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        blocks, width = [], 16
        for outputs, stride in self.SETTINGS:
            blocks.append(Block(width, outputs, stride))
            width = outputs
        self.blocks = nn.Sequential(*blocks)
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.classifier(self.dropout(x.mean((2, 3))))


def main():
    data = TensorDataset(torch.randn(256, 3, 64, 64), torch.randint(0, 100, (256,)))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=4e-5)
    for _ in range(100):
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
