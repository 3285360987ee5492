import argparse

import torch
from wavekit.engine import run_experiment
from wavekit.nets import build_net

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
net = build_net(width=64)
run_experiment(net, torch.utils.data.TensorDataset(torch.randn(10, 4)), epochs=args.epochs)
