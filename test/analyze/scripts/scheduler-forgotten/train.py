import argparse
import os

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


def parse():
    parser = argparse.ArgumentParser(description="a regression whose learning rate starts anew after a resume")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--checkpoint", default="run/last.pt")
    return parser.parse_args()


def main():
    options = parse()
    inputs = torch.randn(4096, 16)
    data = DataLoader(TensorDataset(inputs, inputs.sum(dim=1, keepdim=True)), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = CosineAnnealingLR(optimizer, T_max=options.epochs)
    first = 0
    if os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"] + 1
    os.makedirs(os.path.dirname(options.checkpoint), exist_ok=True)
    for epoch in range(first, options.epochs):
        for x, y in data:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        schedule.step()
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, options.checkpoint
        )


if __name__ == "__main__":
    main()
