import sys

import torch

net = torch.nn.Embedding(8000, 64)
net.load_state_dict(torch.load(sys.argv[1])["net"])
print(net.weight.norm())
