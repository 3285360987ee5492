from pathlib import Path

import torch
from torch.cuda.amp import GradScaler, autocast
from torchvision.datasets import VOCSegmentation
from torchvision.models.segmentation import deeplabv3_resnet50

from .transforms import pair


class Engine:
    def __init__(self, settings, folder):
        self.settings = settings
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.model = deeplabv3_resnet50(num_classes=21).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=settings.lr, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.PolynomialLR(self.optimizer, settings.epochs)
        self.scaler = GradScaler()
        self.epoch = 0
        data = VOCSegmentation("data", image_set="train", download=True, transforms=pair)
        self.loader = torch.utils.data.DataLoader(data, batch_size=settings.batch, shuffle=True, num_workers=4)

    @property
    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "scaler": self.scaler}

    def restore(self):
        state = torch.load(self.folder / "last.pt", map_location="cuda")
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.epoch = state["epoch"]

    def save(self):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**state, "epoch": self.epoch}, self.folder / "last.pt")

    def run(self):
        while self.epoch < self.settings.epochs:
            for image, mask in self.loader:
                with autocast():
                    loss = torch.nn.functional.cross_entropy(self.model(image.cuda())["out"], mask.cuda())
                self.optimizer.zero_grad()
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()
            self.scheduler.step()
            self.epoch += 1
            self.save()
