"""Shuffled batches, dropout, all three random generators, a schedule, and a second model."""

import os
import random

import numpy
import torch
from crucible.checkpoint.pytorch import Checkpoint
from lab import EPOCHS, OUTPUT, SAVE_EVERY, STEPS_OF_EPOCH, hold

torch.manual_seed(0)
random.seed(1)
numpy.random.seed(2)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
average = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.9)
data = torch.utils.data.TensorDataset(torch.randn(4 * STEPS_OF_EPOCH, 4), torch.randn(4 * STEPS_OF_EPOCH, 1))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
checkpoint = Checkpoint(
    model=model, optimizer=optimizer, scheduler=scheduler, others={"average": average}, every_steps=SAVE_EVERY
)
print("beginning after step", checkpoint.restore(), flush=True)
for step, (x, y) in checkpoint.batches(loader, epochs=EPOCHS):
    noise = random.random() + numpy.random.rand()
    loss = torch.nn.functional.mse_loss(model(x) * noise, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        average.weight.mul_(0.9).add_(x.mean(0))
    hold(step)
    checkpoint.step(step, loss=loss)
torch.save([model.state_dict(), average.state_dict()], os.path.join(OUTPUT, "final.pt"))
