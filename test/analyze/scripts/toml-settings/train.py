import pathlib
import sys
import tomllib

import torch
from torch import nn

settings = tomllib.loads(pathlib.Path(sys.argv[1]).read_text())
training = settings["training"]

torch.manual_seed(training["seed"])
net = nn.Sequential(nn.Linear(settings["model"]["inputs"], settings["model"]["hidden"]), nn.ReLU(), nn.Linear(settings["model"]["hidden"], 1))
optimizer = torch.optim.RMSprop(net.parameters(), lr=training["lr"])
x = torch.randn(2000, settings["model"]["inputs"])
y = x.pow(2).sum(1, keepdim=True)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=training["batch_size"])

for epoch in range(training["epochs"]):
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(net(a), b)
        loss.backward()
        optimizer.step()
    if training["save"]:
        torch.save({"net": net.state_dict(), "epoch": epoch}, "last.pt")
print(loss.item())
