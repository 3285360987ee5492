import argparse
import glob
import json
import os

import torch
from torch.cuda.amp import GradScaler, autocast


class Settings:
    def __init__(self, **entries):
        for key, value in entries.items():
            if type(value) == dict:
                value = Settings(**value)
            self[key] = value

    def __setitem__(self, key, value):
        return setattr(self, key, value)


def read_settings():
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", "--config", default="base.json")
    parser.add_argument("-n", "--name", required=True)
    args = parser.parse_args()
    with open(args.config) as file:
        settings = Settings(**json.loads(file.read()))
    settings.folder = os.path.join("./logs", args.name)
    return settings


def keep(net, optimizer, epoch, paths):
    for path in paths:
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)


def take_up(path, net, optimizer):
    saved = torch.load(path, map_location="cpu")
    optimizer.load_state_dict(saved["optimizer"])
    state = {}
    for key, value in net.state_dict().items():
        try:
            state[key] = saved["net"][key]
        except KeyError:
            state[key] = value
    net.load_state_dict(state)
    return saved["epoch"]


def newest(folder):
    return sorted(glob.glob(os.path.join(folder, "S_*.pt")))[-1]


def main():
    settings = read_settings()
    net = torch.nn.GRU(settings.data.bands, 64).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), settings.fit.lr)
    try:
        first = take_up(newest(settings.folder), net, optimizer)
    except IndexError:
        first = 1
    scaler = GradScaler(enabled=settings.fit.half)
    data = torch.utils.data.DataLoader(torch.randn(900, 10, 80), batch_size=settings.fit.batch)
    step = 0
    for epoch in range(first, settings.fit.rounds + 1):
        for x in data:
            with autocast(enabled=settings.fit.half):
                loss = net(x.cuda())[0].pow(2).mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            if step % settings.fit.save_every == 0:
                paths = [os.path.join(settings.folder, f"S_{step}.pt")]
                if epoch % 10 == 0:
                    paths.append(os.path.join(settings.folder, f"whole_{epoch}.pt"))
                keep(net, optimizer, epoch, paths)
            step += 1


if __name__ == "__main__":
    main()
