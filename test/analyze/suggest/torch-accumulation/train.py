import torch

torch.manual_seed(0)
data = torch.utils.data.DataLoader(torch.randn(100, 4), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(20):
    for i, x in enumerate(data):
        loss = model(x).pow(2).mean() / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
