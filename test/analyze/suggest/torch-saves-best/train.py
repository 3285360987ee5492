import os
import time

import torch
from torch import nn

torch.manual_seed(1)
x = torch.randn(64, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
best = float("inf")
os.makedirs("saved", exist_ok=True)
for epoch in range(20):
    optimizer.zero_grad()
    loss = (model(x + 0.1 * torch.randn(64, 4)) - 1).pow(2).mean()
    loss.backward()
    optimizer.step()
    print("epoch", epoch, loss.item(), flush=True)
    time.sleep(0.1)
    if loss.item() < best:
        best = loss.item()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "saved/best.pt")
torch.save({"model": model.state_dict(), "best": best}, "final.pt")
