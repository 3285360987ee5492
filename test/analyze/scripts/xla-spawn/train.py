import argparse

import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_multiprocessing as xmp
import torchvision


def worker(index, options):
    device = xm.xla_device()
    model = torchvision.models.resnet18(num_classes=10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * xm.xrt_world_size())
    data = torchvision.datasets.CIFAR10("data", transform=torchvision.transforms.ToTensor(), download=True)
    loader = torch.utils.data.DataLoader(data, batch_size=options.batch_size)
    for epoch in range(options.epochs):
        for x, y in pl.ParallelLoader(loader, [device]).per_device_loader(device):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            xm.optimizer_step(optimizer)
        xm.save(model.state_dict(), f"model-{epoch}.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=20)
    xmp.spawn(worker, args=(parser.parse_args(),))
