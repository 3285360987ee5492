import argparse

import torch
from torchvision import datasets, transforms
from visionkit.keeping import Keeper

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="digits")
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
loader = torch.utils.data.DataLoader(
    datasets.MNIST(args.data, download=True, transform=transforms.ToTensor()), batch_size=128, shuffle=True
)
keeper = Keeper(net, opt, most=3)
best = None
for epoch in range(args.epochs):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    best = keeper.save_checkpoint(epoch, metric=loss.item())
