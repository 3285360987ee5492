import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n):
        self.total += value * n
        self.count += n


class Trainer:
    def __init__(self, model, loader, epochs):
        self.model = model
        self.loader = loader
        self.epochs = epochs
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=epochs)
        self.best = None
        self.steps = 0

    def train(self):
        for epoch in range(self.epochs):
            loss = self.run_epoch()
            self.scheduler.step()
            if self.best is None or loss < self.best:
                self.best = loss
            print(f"epoch {epoch} loss {loss:.4f}", flush=True)
            time.sleep(0.1)

    def run_epoch(self):
        meter = Meter()
        for x, y in self.loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.steps += 1
            meter.update(loss.item(), len(x))
        return meter.total / meter.count


torch.manual_seed(1)
x = torch.randn(256, 6)
loader = DataLoader(TensorDataset(x, x.cos().sum(1, keepdim=True)), batch_size=32, shuffle=True)
trainer = Trainer(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1)), loader, epochs=24)
trainer.train()
torch.save({"model": trainer.model.state_dict(), "best": trainer.best, "steps": trainer.steps}, "final.pt")
