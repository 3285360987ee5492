from torch import nn


def build():
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 1))
