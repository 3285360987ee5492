import random

import numpy as np
import torch

from core.utils import pick_device


class Engine(object):
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = pick_device()
        self.net = torch.nn.Sequential(torch.nn.Linear(30, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(self.device)
        self.optim = torch.optim.Adam(self.net.parameters(), lr=cfg["lr"])
        self.sched = torch.optim.lr_scheduler.StepLR(self.optim, 10)
        self.epoch = 0
        data = torch.utils.data.TensorDataset(torch.randn(3000, 30), torch.randn(3000, 1))
        self.loader = torch.utils.data.DataLoader(data, batch_size=self.cfg["batch_size"], shuffle=True)

    def run(self):
        for self.epoch in range(self.epoch, self.cfg["epochs"]):
            self.train_one_epoch()
            self.sched.step()
            self.snapshot(self.cfg["snapshot"])

    def train_one_epoch(self):
        for x, y in self.loader:
            loss = torch.nn.functional.mse_loss(self.net(x.to(self.device)), y.to(self.device))
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()

    def snapshot(self, path):
        torch.save(
            dict(
                net=self.net.state_dict(),
                optim=self.optim.state_dict(),
                sched=self.sched.state_dict(),
                epoch=self.epoch + 1,
                rng=[torch.get_rng_state(), np.random.get_state(), random.getstate()],
            ),
            path,
        )

    def restore(self, path):
        s = torch.load(path, map_location=self.device, weights_only=False)
        self.net.load_state_dict(s["net"])
        self.optim.load_state_dict(s["optim"])
        self.sched.load_state_dict(s["sched"])
        self.epoch = s["epoch"]
        torch.set_rng_state(s["rng"][0])
