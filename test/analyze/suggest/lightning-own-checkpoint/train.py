import time

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
        self.outputs = []

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.layers(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        self.outputs.append((self.layers(x).argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        print("epoch", self.current_epoch, float(torch.stack(self.outputs).mean()), flush=True)
        self.outputs.clear()
        time.sleep(0.2)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        steps = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


seed_everything(5)
x = torch.randn(120, 4)
data = TensorDataset(x, (x.sum(1) > 0).long())
checkpoints = ModelCheckpoint(dirpath="saved", filename="{epoch}", every_n_epochs=2, save_top_k=-1)
trainer = Trainer(
    max_epochs=16,
    accelerator="cpu",
    devices=1,
    callbacks=[
        LearningRateMonitor(),
        checkpoints,
    ],
    logger=CSVLogger("logs"),
    enable_progress_bar=False,
    log_every_n_steps=1,
)
model = Net()
trainer.fit(model, DataLoader(data, 20, shuffle=True, num_workers=1), DataLoader(data, 40))
torch.save(model.state_dict(), "final.pt")
