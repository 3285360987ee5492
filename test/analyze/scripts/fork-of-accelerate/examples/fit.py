import argparse
import os

import torch
from accelerate import Accelerator


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", default="states")
    parser.add_argument("--go_on_from", default=None)
    args = parser.parse_args()
    accelerator = Accelerator()
    net = torch.nn.Linear(10, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net, opt = accelerator.prepare(net, opt)
    first = 0
    if args.go_on_from is not None:
        accelerator.load_state(args.go_on_from)
        first = int(os.path.basename(args.go_on_from).split("-")[1]) + 1
    for epoch in range(first, 6):
        for _ in range(50):
            x = torch.randn(8, 10, device=accelerator.device)
            loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
        accelerator.save_state(os.path.join(args.states, f"epoch-{epoch}"))


if __name__ == "__main__":
    main()
