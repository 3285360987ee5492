import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

order = torch.Generator().manual_seed(4)
torch.manual_seed(4)
data = TensorDataset(torch.randn(256, 2) * 0.3 + 1)
loader = DataLoader(data, batch_size=64, shuffle=True, generator=order, drop_last=True)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 1))
g_opt = optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
d_opt = optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.99))
bce = nn.BCEWithLogitsLoss()
fixed = torch.randn(8, 4)

for epoch in range(24):
    for i, (real,) in enumerate(loader):
        critic.zero_grad()
        fake = generator(torch.randn(len(real), 4))
        d_loss = bce(critic(real), torch.ones(len(real), 1)) + bce(critic(fake.detach()), torch.zeros(len(real), 1))
        d_loss.backward()
        d_opt.step()
        generator.zero_grad()
        g_loss = bce(critic(fake), torch.ones(len(real), 1))
        g_loss.backward()
        g_opt.step()
    print("epoch", epoch, "d", round(d_loss.item(), 4), "g", round(g_loss.item(), 4), flush=True)
    time.sleep(0.1)
torch.save({"g": generator.state_dict(), "d": critic.state_dict(), "sample": generator(fixed)}, "final.pt")
