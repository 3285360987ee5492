import argparse
import random
import time

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, size):
        self.x = torch.randn(size, 4)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        x = self.x[index] * random.uniform(0.9, 1.1) + float(np.random.normal(0, 0.01))
        return x, self.x[index].sum().unsqueeze(0)


class Data(pl.LightningDataModule):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        self.train = Noisy(90)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)


class Pair(pl.LightningModule):
    """Two networks, trained in turns."""

    def __init__(self, args):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Linear(4, 3)
        self.decoder = nn.Linear(3, 1)
        self.rate = args.lr
        self.losses = []

    def training_step(self, batch, index):
        x, y = batch
        for optimizer in self.optimizers():
            loss = nn.functional.mse_loss(self.decoder(torch.tanh(self.encoder(x))), y)
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        self.losses.append(loss.item())

    def on_train_epoch_end(self):
        print("epoch", self.current_epoch, "loss", sum(self.losses), flush=True)
        self.losses.clear()
        time.sleep(0.2)

    def configure_optimizers(self):
        return (
            torch.optim.Adam(self.encoder.parameters(), lr=self.rate),
            torch.optim.SGD(self.decoder.parameters(), lr=self.rate, momentum=0.9),
        )


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=15)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--batch_size", type=int, default=15)
args = parser.parse_args()

pl.seed_everything(11)
model = Pair(args)
trainer = pl.Trainer(max_epochs=args.epochs, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False)
trainer.fit(model, datamodule=Data(args.batch_size))
torch.save(model.state_dict(), "final.pt")
