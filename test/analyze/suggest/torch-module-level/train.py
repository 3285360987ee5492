# Statements at the top of the file, with a best score, a history and noise of NumPy.
import random
import time

import numpy as np
import torch
import torch.nn as nn

EPOCHS = 25
np.random.seed(3)
random.seed(3)
torch.manual_seed(3)

inputs = torch.randn(200, 6)
targets = inputs.sin().sum(dim=1, keepdim=True)
net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=2)
loss_fn = nn.MSELoss()
best_loss = float('inf')
history = []
bad_epochs = 0


def run_epoch():
  net.train()
  total = 0.0
  order = torch.randperm(len(inputs))
  for start in range(0, len(inputs), 40):
    rows = order[start:start + 40]
    noise = torch.from_numpy(np.random.normal(0, 0.1, (len(rows), 6)).astype('float32'))
    opt.zero_grad()
    loss = loss_fn(net(inputs[rows] + noise * random.random()), targets[rows])
    loss.backward()
    opt.step()
    total += loss.item()
  return total / 5


for epoch in range(EPOCHS):
  epoch_loss = run_epoch()
  sched.step(epoch_loss)
  history.append(epoch_loss)
  if epoch_loss < best_loss:
    best_loss = epoch_loss
    bad_epochs = 0
  else:
    bad_epochs += 1
  print('epoch %d loss %.4f best %.4f bad %d' % (epoch, epoch_loss, best_loss, bad_epochs), flush=True)
  time.sleep(0.1)

torch.save({'net': net.state_dict(), 'history': history, 'best': best_loss, 'last': epoch_loss}, 'final.pt')
