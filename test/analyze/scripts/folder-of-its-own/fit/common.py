import os

import torch
import torch.distributed as dist


def start_processes():
    if int(os.environ.get("RANK", -1)) == -1:
        return 0
    dist.init_process_group(backend="nccl")
    return int(os.environ["LOCAL_RANK"])


def state(net, name="words", optimizer=None, scaler=None, epoch=0, step=0, folder="../states"):
    path = f"{folder}/{name}_{net.width}.pt"
    if optimizer is None:
        return torch.load(path, map_location="cpu") if os.path.exists(path) else None
    saved = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
        "epoch": epoch,
        "step": step,
    }
    torch.save(saved, path + ".tmp")
    os.replace(path + ".tmp", path)
