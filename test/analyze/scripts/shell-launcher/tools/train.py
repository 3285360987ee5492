import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import torch
import torch.distributed as dist

from lib.net import make_net

ap = argparse.ArgumentParser()
ap.add_argument("--batch-size", type=int, default=8)
ap.add_argument("--epochs", type=int, default=1)
args = ap.parse_args()
dist.init_process_group(backend="nccl")
gpu = int(os.environ["LOCAL_RANK"])
net = torch.nn.parallel.DistributedDataParallel(make_net().cuda(gpu), device_ids=[gpu])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.randn(1000, 3, 32, 32), batch_size=args.batch_size)
for epoch in range(args.epochs):
    for x in data:
        opt.zero_grad()
        net(x.cuda(gpu)).mean().backward()
        opt.step()
if dist.get_rank() == 0:
    torch.save(net.module.state_dict(), "net.pth")
