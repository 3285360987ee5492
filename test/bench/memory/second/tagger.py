import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, words=8000, characters=80, tags=17, width=128, hidden=192):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.characters = nn.Embedding(characters, 32)
        self.spelling = nn.Conv1d(32, 64, kernel_size=3, padding=1)
        self.rnn = nn.GRU(width + 64, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=0.3)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(2 * hidden, tags)

    def forward(self, words, characters):
        batch, length, letters = characters.shape
        spelled = self.characters(characters.view(batch * length, letters)).transpose(1, 2)
        spelled = torch.relu(self.spelling(spelled)).max(dim=2).values.view(batch, length, 64)
        states, _ = self.rnn(torch.cat([self.words(words), spelled], dim=-1))
        return self.out(self.dropout(states))


BATCH, LENGTH, LETTERS = 32, 40, 12
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_function = nn.CrossEntropyLoss()
for step in range(1000):
    words = torch.randint(0, 8000, (BATCH, LENGTH))
    characters = torch.randint(0, 80, (BATCH, LENGTH, LETTERS))
    tags = torch.randint(0, 17, (BATCH, LENGTH))
    scores = model(words, characters)
    loss = loss_function(scores.reshape(-1, 17), tags.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
