import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, vocabulary, width, heads, layers, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, heads, dim_feedforward=1024, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=layers)
        self.out = nn.Linear(width, classes)

    def forward(self, tokens):
        hidden = self.encoder(self.embedding(tokens))
        return self.out(hidden.mean(dim=1))


seq_len = 256
data = TensorDataset(torch.randint(0, 5000, (64, seq_len)), torch.randint(0, 4, (64,)))
model = Classifier(5000, 256, 8, 4, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for tokens, labels in DataLoader(data, batch_size=16, shuffle=True):
        loss = criterion(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
