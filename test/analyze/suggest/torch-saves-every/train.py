import os
import random
import time

import torch
from torch import nn


class Trainer:
    def __init__(self, folder):
        self.folder = folder
        self.model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.1), nn.Linear(16, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 30)
        self.losses = []

    def step(self, x):
        self.optimizer.zero_grad()
        loss = (self.model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, data, epochs):
        for epoch in range(epochs):
            random.shuffle(order := list(range(len(data))))
            self.losses.append(sum(self.step(data[rows]) for rows in order))
            self.schedule.step()
            print("epoch", epoch, self.losses[-1], flush=True)
            time.sleep(0.1)
            if (epoch + 1) % 3 == 0:
                state = {
                    "epoch": epoch + 1,
                    "state_dict": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                }
                torch.save(state, os.path.join(self.folder, f"epoch_{epoch}.pt"))


if __name__ == "__main__":
    random.seed(2)
    torch.manual_seed(2)
    os.makedirs("runs", exist_ok=True)
    trainer = Trainer("runs")
    trainer.train(torch.randn(12, 8, 4), 24)
    torch.save({"model": trainer.model.state_dict(), "losses": trainer.losses}, "final.pt")
