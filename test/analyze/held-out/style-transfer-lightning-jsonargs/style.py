from argparse import ArgumentParser

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from styledata import Pictures


class Style(pl.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Conv2d(3, 3, 9, padding=4)

    def training_step(self, batch, i):
        return (self.net(batch) - batch).abs().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    ap = ArgumentParser()
    ap.add_argument("--gpus", type=int, default=0)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--resume")
    hp = ap.parse_args()
    keep = ModelCheckpoint(save_weights_only=True, every_n_epochs=2, save_top_k=-1)
    model = Style(hp.lr)
    if hp.resume:
        model.load_state_dict(torch.load(hp.resume)["state_dict"])
    trainer = pl.Trainer(gpus=hp.gpus, max_epochs=20, callbacks=[keep])
    trainer.fit(model, torch.utils.data.DataLoader(Pictures(), batch_size=4))
