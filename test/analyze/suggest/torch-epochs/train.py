"""A regression with dropout, shuffled batches and a schedule of the learning rate."""
from __future__ import annotations

import argparse
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.body(x)


def train(args, model, loader, optimizer, epoch):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=25)
    args = parser.parse_args()
    torch.manual_seed(11)
    x = torch.randn(300, 8)
    y = x.prod(dim=1, keepdim=True).tanh()
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
    for epoch in range(1, args.epochs + 1):
        train(args, model, loader, optimizer, epoch)
        scheduler.step()
        time.sleep(0.1)  # stands for a larger model
    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
