import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class MixtureOfExperts(nn.Module):
    def __init__(self, width, inner, experts=6, active=2):
        super().__init__()
        self.active = active
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList([Expert(width, inner) for _ in range(experts)])

    def forward(self, x):
        shape = x.shape
        x = x.view(-1, shape[-1])
        weights, chosen = self.router(x).topk(self.active, dim=-1)
        weights = F.softmax(weights, dim=-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, slots = torch.where(chosen == number)
            out = out.index_add(0, rows, expert(x[rows]) * weights[rows, slots].unsqueeze(-1))
        return out.view(shape)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.moe = MixtureOfExperts(width, 3 * width)

    def forward(self, x, mask):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.moe(self.norm2(x))


class Model(nn.Module):
    def __init__(self, vocabulary=3000, width=256, heads=4, depth=4, length=128):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)
        self.register_buffer("mask", torch.triu(torch.full((length, length), float("-inf")), 1))

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
for step in range(800):
    tokens = torch.randint(0, 3000, (8, 129))
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 3000), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
