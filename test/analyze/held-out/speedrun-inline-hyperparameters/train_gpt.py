import os
import glob
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, Tensor


class CausalSelfAttention(nn.Module):
    def __init__(self, dim: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.num_heads, D // self.num_heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.attn = CausalSelfAttention(dim, num_heads)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        x = x + self.attn(F.rms_norm(x, (x.size(-1),)))
        return x + self.down(F.relu(self.up(F.rms_norm(x, (x.size(-1),)))).square())


class GPT(nn.Module):
    def __init__(self, vocab, layers, heads, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, idx, target):
        x = self.embed(idx)
        for b in self.blocks:
            x = b(x)
        return F.cross_entropy(self.lm_head(x).float().view(-1, 50304), target.view(-1))


def shards(pattern, seqlen, batch, rank, world):
    for file in sorted(glob.glob(pattern)):
        tokens = torch.from_numpy(np.fromfile(file, dtype=np.uint16).astype(np.int64))
        n = batch * seqlen
        for at in range(rank * n, len(tokens) - n - 1, n * world):
            buf = tokens[at : at + n + 1].cuda(non_blocking=True)
            yield buf[:-1].view(batch, seqlen), buf[1:].view(batch, seqlen)


@dataclass
class Hyperparameters:
    train_files = "data/fineweb10B/fineweb_train_*.bin"
    device_batch_size: int = 32
    seq_len: int = 1024
    num_iterations: int = 4578
    warmdown_iters: int = 1308
    save_checkpoint = False


args = Hyperparameters()

assert torch.cuda.is_available()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group(backend="nccl", device_id=device)
rank, world = dist.get_rank(), dist.get_world_size()

model = GPT(50304, 12, 6, 768).cuda().bfloat16()
model = torch.compile(model)
for p in model.parameters():
    dist.broadcast(p.detach(), 0)
opt = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.95), fused=True)


def get_lr(it):
    if it < args.num_iterations - args.warmdown_iters:
        return 1.0
    return (args.num_iterations - it) / args.warmdown_iters


sched = torch.optim.lr_scheduler.LambdaLR(opt, get_lr)
loader = shards(args.train_files, args.seq_len, args.device_batch_size, rank, world)
t0 = time.time()
for step in range(args.num_iterations + 1):
    last_step = step == args.num_iterations
    if last_step:
        if rank == 0 and args.save_checkpoint:
            os.makedirs("logs", exist_ok=True)
            torch.save(dict(step=step, model=model.state_dict()), "logs/state.pt")
        break
    x, y = next(loader)
    model(x, y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    opt.step()
    sched.step()
    model.zero_grad(set_to_none=True)
    if rank == 0 and step % 100 == 0:
        print(f"step:{step}/{args.num_iterations} time:{time.time() - t0:.1f}s")
dist.destroy_process_group()
