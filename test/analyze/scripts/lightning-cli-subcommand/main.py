import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI
from torch.utils.data import DataLoader, TensorDataset


class Waves(LightningDataModule):
    def __init__(self, length: int = 128, batch_size: int = 64):
        super().__init__()
        self.save_hyperparameters()

    def train_dataloader(self):
        x = torch.rand(4096, self.hparams.length)
        return DataLoader(TensorDataset(x, x.cumsum(1)), batch_size=self.hparams.batch_size)


class Recurrent(LightningModule):
    def __init__(self, hidden: int = 256, lr: float = 1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.gru = torch.nn.GRU(1, hidden, batch_first=True)
        self.out = torch.nn.Linear(hidden, 1)

    def training_step(self, batch, _):
        x, y = batch
        states, _ = self.gru(x.unsqueeze(-1))
        loss = torch.nn.functional.mse_loss(self.out(states).squeeze(-1), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def cli_main():
    LightningCLI(Recurrent, Waves, seed_everything_default=5)


if __name__ == "__main__":
    cli_main()
