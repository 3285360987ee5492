import argparse
import os
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", type=Path, default=Path("states"))
    parser.add_argument("--max_steps", type=int, default=60)
    parser.add_argument("--per_device_batch_size", type=int, default=16)
    parser.add_argument("--checkpointing_steps", type=int, default=10)
    parser.add_argument("--resume_from_checkpoint", type=str, default=None, help='a folder, or "latest"')
    return parser.parse_args()


def main():
    args = parse()
    accelerator = Accelerator()
    set_seed(3)
    features = torch.randn(320, 12)
    target = features.sum(dim=1, keepdim=True).sin()
    loader = DataLoader(TensorDataset(features, target), batch_size=args.per_device_batch_size)
    network = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.GELU(), torch.nn.Linear(24, 1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.max_steps)
    network, optimizer, loader, schedule = accelerator.prepare(network, optimizer, loader, schedule)

    global_step = 0
    if args.resume_from_checkpoint:
        if args.resume_from_checkpoint == "latest":
            folders = sorted(args.output_dir.glob("step_*"), key=lambda p: int(p.name.split("_")[1]))
            path = folders[-1] if folders else None
        else:
            path = Path(args.resume_from_checkpoint)
        if path is not None:
            accelerator.load_state(str(path))
            global_step = int(path.name.split("_")[1])

    per_epoch = len(loader)
    while global_step < args.max_steps:
        batches = loader
        if global_step % per_epoch:
            batches = accelerator.skip_first_batches(loader, global_step % per_epoch)
        for x, y in batches:
            loss = torch.nn.functional.mse_loss(network(x), y)
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            global_step += 1
            if global_step % args.checkpointing_steps == 0:
                accelerator.save_state(str(args.output_dir / f"step_{global_step}"))
            if global_step >= args.max_steps:
                break
        accelerator.print(f"step {global_step} loss {loss.item():.4f}")
    accelerator.wait_for_everyone()
    torch.save(accelerator.unwrap_model(network).state_dict(), "final.pt")


if __name__ == "__main__":
    main()
