import argparse

import torch
import torch.distributed as dist


def has_gpu():
    return torch.cuda.is_available()


def check(args):
    if args.ranks > 1 and not dist.is_available():
        raise SystemExit("torch.distributed is not available")
    if args.must_be_fast:
        if not has_gpu():
            raise SystemExit("no GPU")


def pick():
    return "cuda" if has_gpu() else "cpu"


parser = argparse.ArgumentParser()
parser.add_argument("--ranks", type=int, default=1)
parser.add_argument("--must-be-fast", action="store_true")
args = parser.parse_args()
check(args)
device = torch.device(pick())
net = torch.nn.Linear(8, 8).to(device)
opt = torch.optim.Adam(net.parameters())
for step in range(1000):
    loss = (net(torch.randn(16, 8, device=device)) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
