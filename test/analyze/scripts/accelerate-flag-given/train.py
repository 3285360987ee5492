import argparse
import os
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from corpus import Corpus


def run(args):
    accelerator = Accelerator()
    loader = DataLoader(Corpus("train"), shuffle=True, batch_size=8)
    model = torch.nn.Sequential(torch.nn.EmbeddingBag(30000, 64), torch.nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    begin = 0
    if args.resume_from_checkpoint is not None:
        accelerator.load_state(args.resume_from_checkpoint)
        begin = int(args.resume_from_checkpoint.split("_")[-1]) + 1
    for epoch in range(begin, 3):
        for ids, label in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(ids), label)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        if args.checkpointing_steps == "epoch":
            accelerator.save_state(f"epoch_{epoch}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--checkpointing_steps", type=str, default=None)
    ap.add_argument("--resume_from_checkpoint", type=str, default=None)
    run(ap.parse_args())
