"""Saves its options too, which torch.load refuses unless it is told otherwise."""
import argparse
import os
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def save(path, state):
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--state", default="state/last.pt")
    args = parser.parse_args()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    x = torch.randn(400, 10)
    y = (x[:, :3].sum(1) > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    epoch = 0
    os.makedirs(os.path.dirname(args.state), exist_ok=True)
    if os.path.exists(args.state):
        state = torch.load(args.state)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["torch_rng"])
        random.setstate(state["python_rng"])
        epoch = state["epoch"]
    while epoch < args.epochs:
        for a, b in loader:
            loss = nn.functional.cross_entropy(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        epoch += 1
        save(
            args.state,
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "torch_rng": torch.get_rng_state(),
                "args": args,
                "python_rng": random.getstate(),
                "epoch": epoch,
            },
        )
        print(f"epoch {epoch} loss {loss.item():.4f}")
    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
