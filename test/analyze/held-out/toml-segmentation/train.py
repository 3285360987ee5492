import sys
import tomllib
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import OxfordIIITPet

from unet import UNet


def load_config(path):
    with open(path, "rb") as f:
        return tomllib.load(f)


def main():
    cfg = load_config(sys.argv[1])
    train, data = cfg["train"], cfg["data"]
    out = Path(train["output"])
    out.mkdir(parents=True, exist_ok=True)
    device = "cuda"

    net = UNet(**cfg["model"]).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=train["lr"], momentum=train["momentum"])
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=train["epochs"])

    start = 0
    resume = out / "last.pth"
    if resume.is_file():
        state = torch.load(resume, map_location=device)
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
        sched.load_state_dict(state["sched"])
        start = state["epoch"] + 1

    dataset = OxfordIIITPet(data["root"], target_types="segmentation", download=True)
    loader = DataLoader(dataset, batch_size=data["batch_size"], shuffle=True, drop_last=True)
    for epoch in range(start, train["epochs"]):
        for image, mask in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(image.to(device)), mask.to(device))
            loss.backward()
            opt.step()
        sched.step()
        if epoch % train["save_every"] == 0 or epoch == train["epochs"] - 1:
            state = {"net": net.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(), "epoch": epoch}
            torch.save(state, resume)


if __name__ == "__main__":
    main()
