import os

import torch
import torch.distributed as dist


def collate_fn(batch):
    return tuple(zip(*batch))


def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0


def save_on_master(*args, **kwargs):
    if is_main():
        torch.save(*args, **kwargs)


def init_distributed_mode(args):
    if "RANK" in os.environ:
        args.gpu = int(os.environ["LOCAL_RANK"])
        args.distributed = True
        torch.cuda.set_device(args.gpu)
        dist.init_process_group(backend="nccl")
    else:
        args.distributed = False
