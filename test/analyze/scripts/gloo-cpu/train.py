import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(10, 10))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(4):
    for _ in range(50):
        opt.zero_grad()
        model(torch.randn(20, 10)).sum().backward()
        opt.step()
    if rank == 0:
        print("epoch", epoch)
dist.destroy_process_group()
