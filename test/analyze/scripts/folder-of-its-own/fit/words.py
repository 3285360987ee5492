import argparse
import os
import sys

sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..")))

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from fit.common import start_processes, state
from net.words import Words

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=11)
    parser.add_argument("--name", default="words")
    parser.add_argument("--save_every", type=int, default=300)
    parser.add_argument("--go_on", type=int, default=0, choices=[0, 1])
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    rank = start_processes()
    net = Words(32).to(args.device)
    optimizer = torch.optim.AdamW(net.parameters())
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    saved = state(net, args.name) if args.go_on == 1 else None
    first, done = 0, 0
    if saved:
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        scaler.load_state_dict(saved["scaler"])
        first, done = saved["epoch"], saved["step"]
    shared = net
    if dist.is_initialized():
        shared = DistributedDataParallel(net, device_ids=[rank])
    for epoch in range(first, args.epochs):
        data = torch.utils.data.DataLoader(torch.randn(9000, 32), batch_size=args.batch)
        for step, x in enumerate(data, start=done + 1):
            with torch.cuda.amp.autocast(dtype=torch.bfloat16):
                loss = shared(x.to(args.device)).pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if step % args.save_every == 0 and rank == 0:
                state(net, args.name, optimizer, scaler, epoch, step)
