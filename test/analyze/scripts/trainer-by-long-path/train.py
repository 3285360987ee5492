import torch
from pytorch_lightning.core.module import LightningModule
from pytorch_lightning.trainer.trainer import Trainer


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 1)

    def training_step(self, batch, _):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


loader = torch.utils.data.DataLoader(torch.randn(600, 6), batch_size=20)
Trainer(accelerator="gpu", devices=2, max_epochs=4, default_root_dir="work").fit(Net(), loader)
