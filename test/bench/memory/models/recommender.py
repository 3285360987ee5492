import torch
from torch import nn

USERS, ITEMS, WIDTH = 20000, 5000, 64


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, WIDTH)
        self.items = nn.Embedding(ITEMS, WIDTH)
        layers = []
        for _ in range(3):
            layers += [nn.Linear(2 * WIDTH, 2 * WIDTH), nn.ReLU()]
        self.tower = nn.Sequential(*layers)
        self.score = nn.Linear(2 * WIDTH, 1)

    def forward(self, user, item):
        pair = torch.cat([self.users(user), self.items(item)], dim=1)
        return self.score(self.tower(pair)).squeeze(1)


model = Recommender()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
batch_size = 1024
for step in range(2000):
    user = torch.randint(0, USERS, (batch_size,))
    item = torch.randint(0, ITEMS, (batch_size,))
    rating = torch.rand(batch_size)
    loss = nn.functional.mse_loss(model(user, item), rating)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
