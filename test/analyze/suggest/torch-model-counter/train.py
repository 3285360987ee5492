import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) / (1 + self.calls / 1000)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(20):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
