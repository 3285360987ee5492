import argparse
import os

import torch
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import ModelCheckpoint


class Rays(LightningModule):
    def __init__(self):
        super().__init__()
        self.field = torch.nn.Linear(6, 4)

    def training_step(self, batch, index):
        return {"loss": self.field(batch).mean()}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.randn(9000, 6), batch_size=700, shuffle=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="scene")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--ckpt", type=str, default=None)
    args = parser.parse_args()
    keeper = ModelCheckpoint(filepath=os.path.join(f"ckpts/{args.name}", "{epoch:d}"), monitor="loss", save_top_k=5)
    trainer = Trainer(
        max_epochs=16,
        checkpoint_callback=keeper,
        resume_from_checkpoint=args.ckpt,
        gpus=args.gpus,
        distributed_backend="ddp" if args.gpus > 1 else None,
    )
    trainer.fit(Rays())
