import contextlib
import time

import torch


@contextlib.contextmanager
def timed(name):
    begun = time.monotonic()
    yield begun
    print(name, time.monotonic() - begun)


torch.manual_seed(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 4)
with timed("training") as begun, open("log.txt", "a") as log:
    for epoch in range(24):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item(), time.monotonic() - begun, file=log)
        time.sleep(0.1)
torch.save(model.state_dict(), "final.pt")
