"""Train a small diffusion transformer with FSDP2."""
import argparse
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from dit.checkpoint import Checkpointer
from dit.data import latents
from dit.model import DiT


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=80_000)
    p.add_argument("--local-batch-size", type=int, default=24)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--ckpt-dir", default="checkpoints")
    p.add_argument("--ckpt-every", type=int, default=2000)
    return p.parse_args()


def main(args):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))

    model = DiT(dim=512, depth=8, heads=8).to("cuda")
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)

    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    ckpt = Checkpointer(args.ckpt_dir, model, opt)
    step = ckpt.load_latest()

    data = latents(args.local_batch_size, dist.get_rank(), skip=step)
    while step < args.steps:
        x, y = next(data)
        t = torch.rand(x.shape[0], device="cuda")
        noise = torch.randn_like(x)
        xt = (1 - t.view(-1, 1, 1)) * x + t.view(-1, 1, 1) * noise
        loss = (model(xt, t, y) - (noise - x)).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        step += 1
        if step % args.ckpt_every == 0:
            ckpt.save(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(parse())
