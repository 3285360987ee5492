import math
import sys

import torch


def train_one_epoch(model, optimizer, loader, device, epoch, scaler=None):
    model.train()
    for images, targets in loader:
        images = [i.to(device) for i in images]
        with torch.cuda.amp.autocast(enabled=scaler is not None):
            losses = sum(model(images, targets).values())
        if not math.isfinite(losses.item()):
            sys.exit(1)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(losses).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            losses.backward()
            optimizer.step()
