import os
import time

import torch
from torch import nn

torch.manual_seed(5)
x = torch.randn(120, 4)
y = x.prod(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
best = float("inf")
os.makedirs("saved", exist_ok=True)
for epoch in range(24):
    total = 0.0
    for rows in torch.randperm(len(x)).split(30):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    best = min(best, total)
    print("epoch", epoch, "loss", total, "best", best, flush=True)
    time.sleep(0.1)
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},
        "saved/last.pt",
    )
torch.save({"model": model.state_dict(), "best": best}, "final.pt")
