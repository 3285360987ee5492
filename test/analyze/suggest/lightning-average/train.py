import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Average(L.Callback):
    def on_train_start(self, trainer, module):
        self.averages = {name: value.clone() for name, value in module.state_dict().items()}

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        state = module.state_dict()
        for name, average in self.averages.items():
            average.mul_(0.99).add_(state[name], alpha=0.01)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


L.seed_everything(0)
trainer = L.Trainer(max_epochs=20, callbacks=[Average()])
trainer.fit(Net(), DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8))
