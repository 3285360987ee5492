import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def work(rank, world, args):
    if world > 1:
        dist.init_process_group(args.backend, rank=rank, world_size=world)
    device = torch.device("cuda", rank)
    net = torch.nn.Linear(128, 10).to(device)
    if world > 1:
        net = DistributedDataParallel(net, device_ids=[rank])
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    first = 0
    if args.seed is not None:
        torch.manual_seed(args.seed)
    if args.restart:
        if os.path.isfile(args.restart):
            old = torch.load(args.restart, map_location=device)
            net.load_state_dict(old["net"])
            opt.load_state_dict(old["opt"])
            first = old["epoch"]
    for epoch in range(first, args.epochs):
        for _ in range(500):
            x = torch.randn(256, 128, device=device)
            loss = torch.nn.functional.cross_entropy(net(x), x[:, :10].argmax(1))
            opt.zero_grad()
            loss.backward()
            opt.step()
        if not args.several or rank == 0:
            torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch + 1}, f"saved/{epoch}.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--several", action="store_true", help="one process for each GPU")
    parser.add_argument("--restart", default="", metavar="PATH")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--backend", default="nccl")
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    os.makedirs("saved", exist_ok=True)
    count = torch.cuda.device_count()
    if args.several:
        mp.spawn(work, nprocs=count, args=(count, args))
    else:
        work(0, 1, args)
