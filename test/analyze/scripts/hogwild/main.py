import argparse

import torch
import torch.multiprocessing as mp
from torchvision import datasets, transforms

from train import train

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--num-processes", type=int, default=2)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(784, 10)

    def forward(self, x):
        return self.fc(x.flatten(1))


if __name__ == "__main__":
    args = parser.parse_args()
    ds = datasets.MNIST("../data", train=True, download=True, transform=transforms.ToTensor())
    model = Net()
    model.share_memory()
    procs = []
    for rank in range(args.num_processes):
        p = mp.Process(target=train, args=(rank, args, model, ds))
        p.start()
        procs.append(p)
    for p in procs:
        p.join()
