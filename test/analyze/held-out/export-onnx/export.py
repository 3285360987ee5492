import sys

import torch
from segmodel import UNet

model = UNet()
model.load_state_dict(torch.load(sys.argv[1], map_location="cpu")["model"])
model.eval()
torch.onnx.export(model, torch.randn(1, 3, 256, 256), sys.argv[2], opset_version=17)
torch.save(model.state_dict(), "weights_only.pt")
