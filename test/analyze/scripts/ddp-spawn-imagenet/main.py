import argparse
import os
import shutil
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torchvision.datasets as datasets
import torchvision.models as models
import torchvision.transforms as transforms

parser = argparse.ArgumentParser(description="ImageNet")
parser.add_argument("--data", default="imagenet")
parser.add_argument("-a", "--arch", default="resnet50")
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("--resume", default="", type=str)
parser.add_argument("-e", "--evaluate", action="store_true")
parser.add_argument("--multiprocessing-distributed", action="store_true")
best_acc1 = 0


def main():
    args = parser.parse_args()
    ngpus = torch.cuda.device_count()
    if args.multiprocessing_distributed:
        mp.spawn(worker, nprocs=ngpus, args=(ngpus, args))
    else:
        worker(None, ngpus, args)


def worker(gpu, ngpus, args):
    global best_acc1
    if args.multiprocessing_distributed:
        dist.init_process_group(backend="nccl", init_method="tcp://127.0.0.1:23456", world_size=ngpus, rank=gpu)
    model = models.__dict__[args.arch]()
    if torch.cuda.is_available():
        if gpu is not None:
            model.cuda(gpu)
            model = nn.parallel.DistributedDataParallel(model, device_ids=[gpu])
        else:
            model = nn.DataParallel(model).cuda()
    else:
        warnings.warn("using CPU, this will be slow")
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    start = 0
    if args.resume:
        if os.path.isfile(args.resume):
            checkpoint = torch.load(args.resume)
            start = checkpoint["epoch"]
            best_acc1 = checkpoint["best_acc1"]
            model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
    tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    train_set = datasets.ImageFolder(os.path.join(args.data, "train"), tf)
    val_set = datasets.ImageFolder(os.path.join(args.data, "val"), tf)
    loader = torch.utils.data.DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    val = torch.utils.data.DataLoader(val_set, batch_size=args.batch_size)
    if args.evaluate:
        validate(val, model, device)
        return
    for epoch in range(start, args.epochs):
        for images, target in loader:
            images, target = images.to(device), target.to(device)
            loss = criterion(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        acc1 = validate(val, model, device)
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        save_checkpoint(
            {
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
            },
            is_best,
        )


def validate(loader, model, device):
    right = 0
    with torch.no_grad():
        for images, target in loader:
            right += (model(images.to(device)).argmax(1).cpu() == target).sum().item()
    return right


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


if __name__ == "__main__":
    main()
