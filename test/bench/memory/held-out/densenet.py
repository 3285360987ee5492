import torch
import torch.nn as nn
import torch.nn.functional as F


class DenseLayer(nn.Module):
    def __init__(self, in_planes, growth_rate):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_planes)
        self.conv1 = nn.Conv2d(in_planes, 4 * growth_rate, kernel_size=1, bias=False)
        self.bn2 = nn.BatchNorm2d(4 * growth_rate)
        self.conv2 = nn.Conv2d(4 * growth_rate, growth_rate, kernel_size=3, padding=1, bias=False)

    def forward(self, x):
        out = self.conv1(F.relu(self.bn1(x)))
        out = self.conv2(F.relu(self.bn2(out)))
        return torch.cat([out, x], 1)


class Transition(nn.Module):
    def __init__(self, in_planes, out_planes):
        super().__init__()
        self.bn = nn.BatchNorm2d(in_planes)
        self.conv = nn.Conv2d(in_planes, out_planes, kernel_size=1, bias=False)

    def forward(self, x):
        return F.avg_pool2d(self.conv(F.relu(self.bn(x))), 2)


class DenseNet(nn.Module):
    def __init__(self, nblocks=(4, 6, 4), growth_rate=16, num_classes=10):
        super().__init__()
        planes = 2 * growth_rate
        self.conv1 = nn.Conv2d(3, planes, kernel_size=3, padding=1, bias=False)
        stages = []
        for i, n in enumerate(nblocks):
            for _ in range(n):
                stages.append(DenseLayer(planes, growth_rate))
                planes += growth_rate
            if i < len(nblocks) - 1:
                stages.append(Transition(planes, planes // 2))
                planes = planes // 2
        self.stages = nn.Sequential(*stages)
        self.bn = nn.BatchNorm2d(planes)
        self.linear = nn.Linear(planes, num_classes)

    def forward(self, x):
        out = F.relu(self.bn(self.stages(self.conv1(x))))
        out = F.adaptive_avg_pool2d(out, 1).flatten(1)
        return self.linear(out)


data = torch.utils.data.TensorDataset(torch.randn(96, 3, 32, 32), torch.randint(0, 10, (96,)))
train_loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
model = DenseNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
for epoch in range(160):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
