import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocabulary=2000, width=256, hidden=512, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=layers, batch_first=True)
        self.out = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        states, _ = self.lstm(self.embed(tokens))
        return self.out(states)


bptt = 64
batch_size = 20
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for step in range(500):
    tokens = torch.randint(0, 2000, (batch_size, bptt + 1))
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
