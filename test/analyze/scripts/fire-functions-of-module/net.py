import torch


class Finder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Conv2d(3, 8, 3)

    def forward(self, image, boxes):
        return self.body(image).mean() - boxes.mean()
