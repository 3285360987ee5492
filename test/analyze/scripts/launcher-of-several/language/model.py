import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
args = parser.parse_args()
dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(8000, 64).cuda(), device_ids=[rank])
opt = torch.optim.Adam(net.parameters())
for step in range(4000):
    loss = net(torch.randint(0, 8000, (128,), device="cuda")).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 250 == 0 and rank == 0:
        torch.save({"net": net.module.state_dict()}, os.path.join(args.out, "last.pt"))
