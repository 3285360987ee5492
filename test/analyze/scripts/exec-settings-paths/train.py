"""Trains on windows of a series; settings.py and the command line change the constants."""
import os

import torch

run_dir = "runs/base"
begin_from = "nothing"  # or "last"
rounds = 2000
keep_every = 100
lr = 1e-3
exec(open("override.py").read())

device = "cuda" if torch.cuda.is_available() else "cpu"
series = torch.sin(torch.linspace(0, 200, 20_000, device=device))
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
opt = torch.optim.Adam(net.parameters(), lr=lr)
first = 0
if begin_from == "last":
    saved = torch.load(os.path.join(run_dir, "last.pt"))
    net.load_state_dict(saved["net"])
    opt.load_state_dict(saved["opt"])
    first = saved["step"] + 1
os.makedirs(run_dir, exist_ok=True)
for step in range(first, rounds):
    at = torch.randint(0, 19_000, (64,))
    x = torch.stack([series[i : i + 32] for i in at])
    loss = ((net(x)[:, 0] - series[at + 32]) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % keep_every == 0:
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "step": step}, os.path.join(run_dir, "last.pt"))
