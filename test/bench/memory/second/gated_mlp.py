import torch
from torch import nn
from torch.nn import functional as F


class SpatialGate(nn.Module):
    def __init__(self, inner, length):
        super().__init__()
        self.norm = nn.LayerNorm(inner // 2)
        self.mix = nn.Conv1d(length, length, kernel_size=1)

    def forward(self, x):
        u, v = x.chunk(2, dim=-1)
        return u * self.mix(self.norm(v))


class Block(nn.Module):
    def __init__(self, width, inner, length):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inlet = nn.Linear(width, inner)
        self.gate = SpatialGate(inner, length)
        self.outlet = nn.Linear(inner // 2, width)

    def forward(self, x):
        y = F.gelu(self.inlet(self.norm(x)))
        return x + self.outlet(self.gate(y))


class GatedMLP(nn.Module):
    def __init__(self, classes, vocabulary=5000, length=160, width=192, inner=768, depth=6):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(Block(width, inner, length) for _ in range(depth)))
        self.classifier = nn.Linear(width, classes)

    def forward(self, tokens):
        return self.classifier(self.blocks(self.embedding(tokens)).mean(dim=1))


texts = torch.utils.data.TensorDataset(torch.randint(0, 5000, (240, 160)), torch.randint(0, 4, (240,)))
model = GatedMLP(classes=4)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
for epoch in range(10):
    for tokens, labels in torch.utils.data.DataLoader(texts, batch_size=24):
        optimizer.zero_grad()
        F.cross_entropy(model(tokens), labels).backward()
        optimizer.step()
