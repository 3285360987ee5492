import time

import torch
from torch import nn


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def epoch(self, x, y):
        order = torch.randperm(len(x))
        total = 0.0
        for rows in order.split(20):
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x[rows]), y[rows])
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total


def run_epoch(trainer, x, y):
    return trainer.epoch(x, y)


torch.manual_seed(3)
x = torch.randn(100, 4)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=0.01))
losses = []
for epoch in range(24):
    losses.append(run_epoch(trainer, x, y))
    print("epoch", epoch, "loss", losses[-1], flush=True)
    time.sleep(0.1)
torch.save({"model": model.state_dict(), "losses": losses}, "final.pt")
