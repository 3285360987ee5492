import os

import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Runner:
    def __init__(self, model, loader, optimizer, save_every, path):
        self.gpu_id = int(os.environ["LOCAL_RANK"])
        self.model = model.to(self.gpu_id)
        self.loader = loader
        self.optimizer = optimizer
        self.save_every = save_every
        self.path = path
        self.epochs_run = 0
        if os.path.exists(path):
            self._load_snapshot(path)
        self.model = DDP(self.model, device_ids=[self.gpu_id])

    def _load_snapshot(self, path):
        snap = torch.load(path, map_location=f"cuda:{self.gpu_id}")
        self.model.load_state_dict(snap["MODEL_STATE"])
        self.epochs_run = snap["EPOCHS_RUN"]

    def _batch(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()

    def _epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        for x, y in self.loader:
            self._batch(x.to(self.gpu_id), y.to(self.gpu_id))

    def _save_snapshot(self, epoch):
        torch.save({"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": epoch}, self.path)

    def train(self, max_epochs):
        for epoch in range(self.epochs_run, max_epochs):
            self._epoch(epoch)
            if self.gpu_id == 0 and epoch % self.save_every == 0:
                self._save_snapshot(epoch)
