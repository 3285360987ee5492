import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1
for step in range(100):
    loss = model(torch.randn(8, 4)).sum()
    loss.backward()
    optimizer.step(
