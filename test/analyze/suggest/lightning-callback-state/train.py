import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Best(L.Callback):
    def __init__(self):
        self.best: float = float("inf")

    def on_train_epoch_end(self, trainer, module):
        loss = float(trainer.callback_metrics["loss"])
        if loss < self.best:
            self.best = loss
            torch.save(module.state_dict(), "best.pt")


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("loss", loss, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


L.seed_everything(0)
data = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8, shuffle=True)
trainer = L.Trainer(max_epochs=20, callbacks=[Best()])
trainer.fit(Net(), data)
