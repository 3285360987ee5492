import argparse
import os
import time

import torch
from torch.utils.data import DataLoader

from data_utils import TextMelCollate, TextMelLoader
from hparams import create_hparams
from model import MelNet


def load_model(hparams):
    model = MelNet(hparams).cuda()
    return model


def warm_start_model(checkpoint_path, model, ignore_layers):
    assert os.path.isfile(checkpoint_path)
    checkpoint_dict = torch.load(checkpoint_path, map_location="cpu")
    model_dict = checkpoint_dict["state_dict"]
    if len(ignore_layers) > 0:
        model_dict = {k: v for k, v in model_dict.items() if k not in ignore_layers}
        dummy_dict = model.state_dict()
        dummy_dict.update(model_dict)
        model_dict = dummy_dict
    model.load_state_dict(model_dict)
    return model


def load_checkpoint(checkpoint_path, model, optimizer):
    assert os.path.isfile(checkpoint_path)
    print("Loading checkpoint '{}'".format(checkpoint_path))
    checkpoint_dict = torch.load(checkpoint_path, map_location="cpu")
    model.load_state_dict(checkpoint_dict["state_dict"])
    optimizer.load_state_dict(checkpoint_dict["optimizer"])
    learning_rate = checkpoint_dict["learning_rate"]
    iteration = checkpoint_dict["iteration"]
    return model, optimizer, learning_rate, iteration


def save_checkpoint(model, optimizer, learning_rate, iteration, filepath):
    torch.save(
        {
            "iteration": iteration,
            "state_dict": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "learning_rate": learning_rate,
        },
        filepath,
    )


def train(output_directory, checkpoint_path, warm_start, hparams):
    torch.manual_seed(hparams.seed)
    torch.cuda.manual_seed(hparams.seed)
    model = load_model(hparams)
    learning_rate = hparams.learning_rate
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, weight_decay=hparams.weight_decay)
    criterion = torch.nn.MSELoss()
    loader = DataLoader(
        TextMelLoader(hparams.training_files),
        num_workers=1,
        shuffle=True,
        batch_size=hparams.batch_size,
        collate_fn=TextMelCollate(),
    )
    iteration = 0
    epoch_offset = 0
    if checkpoint_path is not None:
        if warm_start:
            model = warm_start_model(checkpoint_path, model, hparams.ignore_layers)
        else:
            model, optimizer, _learning_rate, iteration = load_checkpoint(checkpoint_path, model, optimizer)
            learning_rate = _learning_rate
            iteration += 1
            epoch_offset = max(0, int(iteration / len(loader)))
    model.train()
    for epoch in range(epoch_offset, hparams.epochs):
        for i, (text, mel) in enumerate(loader):
            start = time.perf_counter()
            for param_group in optimizer.param_groups:
                param_group["lr"] = learning_rate
            model.zero_grad()
            loss = criterion(model(text.cuda()), mel.cuda())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), hparams.grad_clip_thresh)
            optimizer.step()
            print("{} {:.4f} {:.2f}s/it".format(iteration, loss.item(), time.perf_counter() - start))
            if iteration % hparams.iters_per_checkpoint == 0:
                save_checkpoint(
                    model,
                    optimizer,
                    learning_rate,
                    iteration,
                    os.path.join(output_directory, "checkpoint_{}".format(iteration)),
                )
            iteration += 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--output_directory", type=str, help="directory to save checkpoints")
    parser.add_argument("-c", "--checkpoint_path", type=str, default=None, required=False)
    parser.add_argument("--warm_start", action="store_true", help="load model weights only")
    parser.add_argument("--hparams", type=str, required=False, help="comma separated name=value pairs")
    args = parser.parse_args()
    train(args.output_directory, args.checkpoint_path, args.warm_start, create_hparams(args.hparams))
