import torch
from lightning.pytorch import LightningModule
from torch import nn
from torchaudio.transforms import MelSpectrogram


class KeywordNet(LightningModule):
    def __init__(self, channels: int = 64, lr: float = 1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.mel = MelSpectrogram(n_mels=64)
        self.net = nn.Sequential(
            nn.Conv2d(1, channels, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * channels, 35),
        )

    def training_step(self, batch, _):
        wave, label = batch
        loss = nn.functional.cross_entropy(self.net(self.mel(wave)), label)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        wave, label = batch
        self.log("acc", (self.net(self.mel(wave)).argmax(1) == label).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), self.hparams.lr)
