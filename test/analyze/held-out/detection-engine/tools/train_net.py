import argparse
import datetime
import time

import torch
import torch.utils.data
import torchvision
import yaml
from det import utils
from det.engine import train_one_epoch


def build_parser():
    parser = argparse.ArgumentParser("Detection", add_help=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--device", default="cuda", type=str)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--output-dir", default=".", type=str)
    parser.add_argument("--resume", default="", type=str)
    parser.add_argument("--test-only", dest="test_only", action="store_true")
    return parser


def main(args):
    utils.init_distributed_mode(args)
    with open(args.config) as f:
        conf = yaml.safe_load(f)
    device = torch.device(args.device)
    dataset = torchvision.datasets.CocoDetection(conf["data"], conf["annotations"])
    loader = torch.utils.data.DataLoader(dataset, batch_size=conf["batch"], collate_fn=utils.collate_fn)
    model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None)
    model.to(device)
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
    bare = model.module if args.distributed else model
    optimizer = torch.optim.SGD(bare.parameters(), lr=conf["lr"], momentum=0.9)
    scaler = torch.cuda.amp.GradScaler() if args.amp else None
    sched = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[16, 22])
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")
        bare.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        sched.load_state_dict(checkpoint["lr_scheduler"])
        start_epoch = checkpoint["epoch"] + 1
        if args.amp:
            scaler.load_state_dict(checkpoint["scaler"])
    if args.test_only:
        return
    begin = time.time()
    for epoch in range(start_epoch, conf["epochs"]):
        train_one_epoch(model, optimizer, loader, device, epoch, scaler)
        sched.step()
        if args.output_dir:
            checkpoint = {
                "model": bare.state_dict(),
                "optimizer": optimizer.state_dict(),
                "lr_scheduler": sched.state_dict(),
                "args": args,
                "epoch": epoch,
            }
            if args.amp:
                checkpoint["scaler"] = scaler.state_dict()
            utils.save_on_master(checkpoint, f"{args.output_dir}/model_{epoch}.pth")
    print(datetime.timedelta(seconds=int(time.time() - begin)))


if __name__ == "__main__":
    main(build_parser().parse_args())
