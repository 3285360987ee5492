import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
parser.add_argument("--keep_every", default=None, help="a number of steps, or \"epoch\"")
parser.add_argument("--best_after", type=int, default=-1)
parser.add_argument("--half", default=None)
parser.add_argument("--epochs", type=int, default=7)
args = parser.parse_args()

if hasattr(args.keep_every, "isdigit"):
    every = args.keep_every if args.keep_every == "epoch" else int(args.keep_every)
else:
    every = None
if args.local_rank != -1:
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(args.local_rank)
net = torch.nn.Linear(4, 1)
if args.half is not None:
    net = net.half()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(args.epochs):
    for step in range(200):
        x = torch.randn(32, 4)
        loss = (net(x) - x.sum(1, keepdim=True)).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if isinstance(every, int) and step % every == 0:
            torch.save(net.state_dict(), f"steps/{step}.pt")
    if 0 <= args.best_after < epoch:
        torch.save(net.state_dict(), f"best/{epoch}.pt")
torch.save(net.state_dict(), "net.pt")
