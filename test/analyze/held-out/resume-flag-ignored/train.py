import argparse

import torch

p = argparse.ArgumentParser()
p.add_argument("--resume", default="", help="not done yet")
p.add_argument("--epochs", default=9, type=int)
a = p.parse_args()
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters())
data = torch.utils.data.DataLoader(torch.randn(100, 3), batch_size=8)
start_epoch = 0
if a.resume:
    print("resuming from", a.resume)
    checkpoint = torch.load(a.resume)
    start_epoch = 0
for epoch in range(start_epoch, a.epochs):
    for x in data:
        loss = (model(x) - x).abs().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "ck.pt")
