import os
import pickle
from contextlib import nullcontext

import numpy as np
import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

from model import LM, LMConfig

out_dir = "out"
eval_interval = 1000
always_save = True
init_from = "scratch"  # or "resume"
dataset = "books"
batch_size = 12
block_size = 256
n_layer = 6
learning_rate = 6e-4
max_iters = 100000
backend = "nccl"
device = "cuda"
dtype = "bfloat16"
compile = True
keys = [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, (int, float, bool, str))]
exec(open("configurator.py").read())
config = {k: globals()[k] for k in keys}

ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend=backend)
    local_rank = int(os.environ["LOCAL_RANK"])
    device = f"cuda:{local_rank}"
    torch.cuda.set_device(device)
    master = int(os.environ["RANK"]) == 0
else:
    master = True
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
ctx = torch.amp.autocast(device_type="cuda", dtype=ptdtype)


def get_batch():
    arr = np.memmap(os.path.join("data", dataset, "train.bin"), dtype=np.uint16, mode="r")
    ix = torch.randint(len(arr) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(arr[i : i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(arr[i + 1 : i + 1 + block_size].astype(np.int64)) for i in ix])
    return x.to(device), y.to(device)


iter_num = 0
best = 1e9
if init_from == "scratch":
    model = LM(LMConfig(n_layer=n_layer, block_size=block_size))
elif init_from == "resume":
    ckpt = torch.load(os.path.join(out_dir, "ckpt.pt"), map_location=device)
    model = LM(LMConfig(**ckpt["model_args"]))
    model.load_state_dict(ckpt["model"])
    iter_num = ckpt["iter_num"]
    best = ckpt["best"]
model.to(device)
scaler = torch.amp.GradScaler("cuda", enabled=(dtype == "float16"))
optimizer = model.configure_optimizers(learning_rate)
if init_from == "resume":
    optimizer.load_state_dict(ckpt["optimizer"])
if compile:
    model = torch.compile(model)
if ddp:
    model = DDP(model, device_ids=[local_rank])
raw = model.module if ddp else model
while True:
    if iter_num % eval_interval == 0 and master:
        loss_val = 0.0
        if loss_val < best or always_save:
            best = loss_val
            if iter_num > 0:
                checkpoint = {
                    "model": raw.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "iter_num": iter_num,
                    "best": best,
                    "model_args": {},
                }
                torch.save(checkpoint, os.path.join(out_dir, "ckpt.pt"))
    x, y = get_batch()
    with ctx:
        logits, loss = model(x, y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    iter_num += 1
    if iter_num > max_iters:
        break
if ddp:
    destroy_process_group()
