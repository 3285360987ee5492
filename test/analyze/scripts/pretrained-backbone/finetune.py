import argparse

import timm
import torch
from torchvision.datasets import ImageFolder

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--epochs", type=int, default=10)
args = parser.parse_args()
model = timm.create_model("vit_base_patch16_224", pretrained=False, num_classes=7)
backbone = torch.load("pretrained/vit_b16_in21k.pth")
model.load_state_dict(backbone, strict=False)
model = model.cuda()
cfg = timm.data.resolve_data_config({}, model=model)
loader = torch.utils.data.DataLoader(
    ImageFolder(args.data, timm.data.create_transform(**cfg)), batch_size=32, shuffle=True
)
opt = torch.optim.AdamW(model.head.parameters(), lr=1e-3)
for epoch in range(args.epochs):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
torch.save(model.state_dict(), "flowers.pth")
