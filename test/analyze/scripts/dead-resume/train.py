import torch
from torch import nn

EPOCHS = 100


def save(model, optimizer, epoch, path="state.pt"):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)


def resume(model, optimizer, path="state.pt"):
    s = torch.load(path)
    model.load_state_dict(s["model"])
    optimizer.load_state_dict(s["optimizer"])
    return s["epoch"]


model = nn.Linear(5, 1)
optimizer = torch.optim.Adam(model.parameters())
# start = resume(model, optimizer)
for epoch in range(EPOCHS):
    x = torch.randn(10, 5)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 10 == 9:
        save(model, optimizer, epoch)
