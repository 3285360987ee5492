import importlib
import os

import torch

module = importlib.import_module("models." + os.environ["MODEL"])
net = module.make()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(5):
    for _ in range(10):
        loss = net(torch.randn(4, 8)).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
