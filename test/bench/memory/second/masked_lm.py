import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY, LENGTH, MASK = 6000, 96, 1


class Sentences(Dataset):
    def __init__(self, count):
        self.tokens = torch.randint(2, VOCABULARY, (count, LENGTH))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        tokens = self.tokens[index]
        hidden = torch.rand(LENGTH) < 0.15
        return tokens.masked_fill(hidden, MASK), tokens


class MaskedLM(nn.Module):
    def __init__(self, width=256, heads=4, depth=4, inner=1024):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Parameter(torch.zeros(1, LENGTH, width))
        layer = nn.TransformerEncoderLayer(width, heads, inner, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, VOCABULARY))

    def forward(self, tokens):
        return self.head(self.encoder(self.tokens(tokens) + self.positions))


loader = DataLoader(Sentences(512), batch_size=16, shuffle=True)
model = MaskedLM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for epoch in range(20):
    for inputs, targets in loader:
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
