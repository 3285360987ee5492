import argparse
import sys

import torch

ap = argparse.ArgumentParser()
ap.add_argument("--save-every", type=int, default=0, help="0 never saves")
args = ap.parse_args()
if not torch.cuda.is_available():
    sys.exit("This needs a GPU")
device = torch.device("cuda")
net = torch.nn.Linear(1024, 1024).to(device=device, dtype=torch.bfloat16)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
for epoch in range(5):
    for i in range(1000):
        x = torch.randn(64, 1024, device=device, dtype=torch.bfloat16)
        loss = net(x).float().pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
    if args.save_every > 0 and epoch % args.save_every == 0:
        torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, f"e{epoch}.pt")
