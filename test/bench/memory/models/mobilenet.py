import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision import models

BATCH_SIZE = 4
IMAGE_SIZE = 192

data = TensorDataset(torch.randn(8, 3, IMAGE_SIZE, IMAGE_SIZE), torch.randint(0, 10, (8,)))
loader = DataLoader(data, batch_size=BATCH_SIZE)
net = models.mobilenet_v2()
net.classifier[1] = nn.Linear(1280, 10)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(3):
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
