import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 1)
        self.base.requires_grad_(False)

    def on_train_epoch_start(self):
        if self.current_epoch == 3:
            for parameter in self.base.parameters():
                parameter.requires_grad = True

    def training_step(self, batch, index):
        return self.head(self.base(batch[0])).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


L.seed_everything(0)
trainer = L.Trainer(max_epochs=20)
trainer.fit(Net(), DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8))
