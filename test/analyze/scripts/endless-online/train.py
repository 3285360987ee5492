"""Learns from a stream of events for as long as it runs."""
import itertools
import socket

import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)


def events():
    with socket.create_connection(("events.internal", 9000)) as stream:
        for line in stream.makefile():
            values = [float(word) for word in line.split(",")]
            yield torch.tensor(values[:8]), torch.tensor(values[8:9])


for count in itertools.count(1):
    for x, y in events():
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), f"snapshot-{count:06d}.pt")
