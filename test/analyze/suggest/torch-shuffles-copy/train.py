import random
import time

import torch

random.seed(3)
torch.manual_seed(3)
count = 600
embed = torch.nn.Embedding(count, 8)
optimizer = torch.optim.Adam(embed.parameters(), lr=0.01)
for epoch in range(24):
    order = list(range(count))
    random.shuffle(order)
    for start in range(0, count, 50):
        batch = torch.tensor(order[start : start + 50])
        loss = embed(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), flush=True)
    time.sleep(0.1)
torch.save(embed.state_dict(), "final.pt")
