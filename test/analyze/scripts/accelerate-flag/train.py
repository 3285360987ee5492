import argparse
import os
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from reviews import ReviewSet


def training_function(config, args):
    accelerator = Accelerator(cpu=args.cpu, mixed_precision=args.mixed_precision)
    loader = DataLoader(ReviewSet("train"), shuffle=True, batch_size=config["batch_size"])
    model = torch.nn.Sequential(torch.nn.EmbeddingBag(30000, 64), torch.nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    step = 0
    first = 0
    if args.resume_from_checkpoint:
        accelerator.print(f"Resuming from {args.resume_from_checkpoint}")
        accelerator.load_state(args.resume_from_checkpoint)
        first = int(os.path.basename(args.resume_from_checkpoint).replace("epoch_", "")) + 1
    for epoch in range(first, config["num_epochs"]):
        model.train()
        for batch in loader:
            loss = torch.nn.functional.cross_entropy(model(batch["ids"]), batch["label"])
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if isinstance(args.checkpointing_steps, int) and step % args.checkpointing_steps == 0:
                accelerator.save_state(os.path.join(args.output_dir, f"step_{step}"))
        if args.checkpointing_steps == "epoch":
            accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mixed_precision", type=str, default=None, choices=["no", "fp16", "bf16"])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--checkpointing_steps", type=str, default=None)
    parser.add_argument("--output_dir", default=".")
    parser.add_argument("--resume_from_checkpoint", type=str, default=None)
    args = parser.parse_args()
    training_function({"lr": 2e-5, "num_epochs": 3, "batch_size": 16}, args)


if __name__ == "__main__":
    main()
