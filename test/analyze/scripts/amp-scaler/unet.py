import argparse
import logging
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, random_split

from cars import CarMasks


def train_model(model, device, epochs=5, batch_size=1, save_checkpoint=True, amp=False):
    dataset = CarMasks("imgs", "masks")
    n_val = int(len(dataset) * 0.1)
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val])
    train_loader = DataLoader(train_set, shuffle=True, batch_size=batch_size, num_workers=4)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, foreach=True)
    grad_scaler = torch.cuda.amp.GradScaler(enabled=amp)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(1, epochs + 1):
        model.train()
        for batch in train_loader:
            images, masks = batch["image"].to(device), batch["mask"].to(device)
            with torch.autocast(device.type, enabled=amp):
                loss = criterion(model(images), masks)
            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            grad_scaler.step(optimizer)
            grad_scaler.update()
        if save_checkpoint:
            Path("checkpoints").mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), str(Path("checkpoints") / f"checkpoint_epoch{epoch}.pth"))
            logging.info("saved")


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", "-e", metavar="E", type=int, default=5)
    parser.add_argument("--batch-size", "-b", dest="batch_size", type=int, default=1)
    parser.add_argument("--load", "-f", type=str, default=False, help="Load model from a .pth file")
    parser.add_argument("--amp", action="store_true", default=False)
    return parser.parse_args()


if __name__ == "__main__":
    args = get_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Conv2d(3, 1, 3, padding=1)
    if args.load:
        model.load_state_dict(torch.load(args.load, map_location=device))
    model.to(device=device)
    train_model(model=model, epochs=args.epochs, batch_size=args.batch_size, device=device, amp=args.amp)
