import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from shapes.data import batches


def add_settings(parser, defaults):
    for name, value in defaults.items():
        kind = str if value is None else type(value)
        parser.add_argument(f"--{name}", default=value, type=kind)


def settings():
    defaults = dict(batch=1, save_every=1500, last_step=0, go_on_from="", lr=1e-4)
    parser = argparse.ArgumentParser()
    add_settings(parser, defaults)
    return parser.parse_args()


class Fit:
    def __init__(self, *, net, batch, lr, save_every, last_step, go_on_from):
        self.net, self.batch, self.save_every, self.last_step = net, batch, save_every, last_step
        self.opt = torch.optim.AdamW(net.parameters(), lr=lr)
        self.step = 0
        if go_on_from:
            state = torch.load(go_on_from, map_location="cpu")
            self.net.load_state_dict(state["net"])
            self.opt.load_state_dict(state["opt"])
            self.step = state["step"]
        self.shared = net
        if torch.cuda.is_available():
            dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
            self.shared = DDP(net.cuda())

    def run(self):
        data = batches(self.batch)
        while self.step < self.last_step:
            x = next(data)
            loss = self.shared(x).pow(2).mean()
            loss.backward()
            self.opt.step()
            self.opt.zero_grad()
            self.step += 1
            if self.step % self.save_every == 0:
                state = {"net": self.net.state_dict(), "opt": self.opt.state_dict(), "step": self.step}
                torch.save(state, os.path.join("snapshots", f"{self.step:06d}.pt"))


if __name__ == "__main__":
    args = settings()
    Fit(
        net=torch.nn.Linear(4, 4),
        batch=args.batch,
        lr=args.lr,
        save_every=args.save_every,
        last_step=args.last_step,
        go_on_from=args.go_on_from,
    ).run()
