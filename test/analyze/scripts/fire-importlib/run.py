import importlib

import fire
import torch


def train(model="small", steps=100, lr=0.1):
    net = importlib.import_module(f"models.{model}").make()
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    for step in range(steps):
        loss = net(torch.randn(4, 8)).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    fire.Fire(train)
