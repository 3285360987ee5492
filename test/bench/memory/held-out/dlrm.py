import torch
from torch import nn

TABLES = [10000, 4000, 2500, 800, 120, 60]
DIM = 32


def mlp(sizes):
    layers = []
    for i, o in zip(sizes[:-1], sizes[1:]):
        layers.append(nn.Linear(i, o))
        layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(rows, DIM, mode="sum") for rows in TABLES])
        self.bottom = mlp([13, 256, 128, DIM])
        pairs = len(TABLES) * (len(TABLES) + 1) // 2
        self.top = mlp([pairs + DIM, 512, 256])
        self.out = nn.Linear(256, 1)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        embedded = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        stacked = torch.stack([x] + embedded, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        rows, cols = torch.tril_indices(stacked.shape[1], stacked.shape[1], offset=-1)
        return self.out(self.top(torch.cat([x, products[:, rows, cols]], dim=1))).squeeze(1)


batch_size = 2048
model = Dlrm()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.BCEWithLogitsLoss()
for step in range(10_000):
    dense = torch.rand(batch_size, 13)
    sparse = torch.stack([torch.randint(0, rows, (batch_size, 4)) for rows in TABLES], dim=1)
    click = torch.randint(0, 2, (batch_size,)).float()
    loss = loss_fn(model(dense, sparse), click)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
