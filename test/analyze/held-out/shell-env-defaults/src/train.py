import argparse
import os

import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from snapshot import restore, take


def get_args_parser():
    parser = argparse.ArgumentParser("places", add_help=False)
    parser.add_argument("--epochs", default=90, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--snapshot", default="snapshot.pt")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--wandb", action="store_true")
    return parser


def run(args):
    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)

    ds = torchvision.datasets.Places365("data", small=True, transform=torchvision.transforms.ToTensor())
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_size=args.batch_size, sampler=sampler, num_workers=8, pin_memory=True)
    net = DDP(torchvision.models.convnext_tiny(num_classes=365).cuda(gpu), device_ids=[gpu])
    optim = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.OneCycleLR(optim, 4e-3, epochs=args.epochs, steps_per_epoch=len(loader))
    scaler = torch.cuda.amp.GradScaler(enabled=args.amp)

    first = restore(args.snapshot, gpu, net.module, optim, sched, scaler)
    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        for images, target in loader:
            with torch.cuda.amp.autocast(enabled=args.amp):
                loss = torch.nn.functional.cross_entropy(net(images.cuda(gpu)), target.cuda(gpu), label_smoothing=0.1)
            optim.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optim)
            scaler.update()
            sched.step()
        if gpu == 0:
            take(args.snapshot, epoch, net.module, optim, sched, scaler)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    run(get_args_parser().parse_args())
