import argparse

import torch
from torchvision import datasets, models, transforms

parser = argparse.ArgumentParser()
parser.add_argument("checkpoint")
parser.add_argument("--data", default="data")
args = parser.parse_args()
model = models.resnet50()
model.load_state_dict(torch.load(args.checkpoint, map_location="cuda")["state_dict"])
model.cuda().eval()
images = datasets.ImageFolder(args.data, transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]))
right = 0
with torch.no_grad():
    for x, y in torch.utils.data.DataLoader(images, batch_size=128):
        right += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
print(right / len(images))
