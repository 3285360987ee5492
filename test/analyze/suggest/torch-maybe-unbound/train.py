import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(20):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    if epoch == 10:
        weight = 0.5
    if epoch > 10:
        loss = loss * weight
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
