import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI


class Toy(LightningModule):
    def __init__(self, width: int = 32, lr: float = 0.02):
        super().__init__()
        self.lr = lr
        self.layer = torch.nn.Linear(width, 2)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


class Noise(LightningDataModule):
    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.randn(512, 32), batch_size=16)


if __name__ == "__main__":
    LightningCLI(Toy, Noise, seed_everything_default=7)
