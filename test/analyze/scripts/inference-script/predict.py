import sys
import torch
from PIL import Image
from torchvision import models, transforms

net = models.resnet18()
net.load_state_dict(torch.load("resnet18_flowers.pth", map_location="cpu"))
net.eval()
prep = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
with torch.no_grad():
    for name in sys.argv[1:]:
        scores = net(prep(Image.open(name)).unsqueeze(0))
        print(name, scores.argmax(1).item())
