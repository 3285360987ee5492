import time

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self, width, rate):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 1))

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self.layers(x), y)
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self.layers(x), y))

    def on_train_epoch_end(self):
        print("epoch", self.current_epoch, float(self.trainer.callback_metrics["val_loss"]), flush=True)
        time.sleep(0.2)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.8)]


def main():
    L.seed_everything(3)
    x = torch.randn(96, 4)
    data = TensorDataset(x, x.prod(1, keepdim=True))
    train, valid = torch.utils.data.random_split(data, [72, 24])
    model = Net(width=16, rate=0.01)
    trainer = L.Trainer(
        max_epochs=14,
        logger=False,
        enable_progress_bar=False,
        callbacks=[EarlyStopping("val_loss", patience=10)],
    )
    trainer.fit(model, DataLoader(train, batch_size=12, shuffle=True), DataLoader(valid, batch_size=12))
    torch.save({"model": model.state_dict(), "loss": trainer.callback_metrics["val_loss"]}, "final.pt")


if __name__ == "__main__":
    main()
