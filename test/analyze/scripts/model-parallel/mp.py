import torch
import torch.nn as nn


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10000, 10000).to("cuda:0")
        self.second = nn.Linear(10000, 10).to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x.to("cuda:0")).to("cuda:1"))


net = Split()
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
for step in range(500):
    loss = net(torch.randn(32, 10000)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
