import argparse
import torch
import torchvision
import lightning as L
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from torchvision import transforms as T


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torchvision.models.resnet50(weights=None)

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=0.4, momentum=0.9)
        return [opt], [torch.optim.lr_scheduler.CosineAnnealingLR(opt, 90)]


class ImageNet(L.LightningDataModule):
    def __init__(self, root, batch_size=256):
        super().__init__()
        self.root, self.batch_size = root, batch_size

    def train_dataloader(self):
        ds = torchvision.datasets.ImageFolder(self.root, T.Compose([T.RandomResizedCrop(224), T.ToTensor()]))
        return torch.utils.data.DataLoader(ds, batch_size=self.batch_size, num_workers=8, shuffle=True)


def cli():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="/data/imagenet/train")
    ap.add_argument("--ckpt", default=None)
    return ap.parse_args()


def main():
    a = cli()
    saver = ModelCheckpoint(dirpath="ckpts", every_n_train_steps=1000, save_last=True)
    trainer = L.Trainer(
        accelerator="gpu",
        devices=4,
        strategy="ddp",
        precision="bf16-mixed",
        max_epochs=90,
        callbacks=[saver, LearningRateMonitor()],
    )
    trainer.fit(Classifier(), datamodule=ImageNet(a.data), ckpt_path=a.ckpt)


main()
