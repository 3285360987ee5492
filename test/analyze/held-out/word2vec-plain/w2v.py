import collections
import random

import torch

BATCH_SIZE = 1024
EMBED = 100

words = open("text8").read().split()[:1_000_000]
vocab = {w: i for i, (w, _) in enumerate(collections.Counter(words).most_common(20000))}
ids = [vocab[w] for w in words if w in vocab]
u = torch.nn.Embedding(len(vocab), EMBED, sparse=True)
v = torch.nn.Embedding(len(vocab), EMBED, sparse=True)
optimizer = torch.optim.SparseAdam(list(u.parameters()) + list(v.parameters()), lr=0.01)


def batches():
    random.shuffle(ids)
    for s in range(0, len(ids) - BATCH_SIZE, BATCH_SIZE):
        yield torch.tensor(ids[s : s + BATCH_SIZE]), torch.tensor(ids[s + 1 : s + BATCH_SIZE + 1])


for epoch in range(3):
    total = 0.0
    for c, o in batches():
        loss = -torch.nn.functional.logsigmoid((u(c) * v(o)).sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total)
torch.save({"u": u.weight.data, "v": v.weight.data, "vocab": vocab}, "w2v.pt")
