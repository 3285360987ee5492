"""A small training that saves and resumes in nanoGPT's manner, for tests of the launcher where nanoGPT itself is out of reach.

As there: one file, out_dir/ckpt.pt, is overwritten in place with torch.save(); it lacks the random state; --init_from=resume goes
on from it and fails without it; the batch of the next iteration is drawn before the evaluation that precedes a save; settings
are --name=value. Settings that this model does not have are ignored.
"""

import os
import sys

import torch
from torch.nn import functional

settings = {"out_dir": "out", "init_from": "scratch", "dataset": "shakespeare_char"}
numbers = {"max_iters": 5000, "eval_interval": 250, "eval_iters": 2, "log_interval": 10, "batch_size": 8, "n_embd": 32}
for argument in sys.argv[1:]:
    name, _, value = argument.lstrip("-").partition("=")
    if name in numbers:
        numbers[name] = int(value)
    elif name in settings:
        settings[name] = value
CONTEXT = 8
path = os.path.join(settings["out_dir"], "ckpt.pt")

os.makedirs(settings["out_dir"], exist_ok=True)
torch.manual_seed(1337)
with open(os.path.join("data", settings["dataset"], "input.txt"), encoding="utf-8") as file:
    text = file.read()
characters = sorted(set(text))
codes = torch.tensor([characters.index(character) for character in text])
split = len(codes) * 9 // 10
parts = {"train": codes[:split], "val": codes[split:]}


def get_batch(part):
    data = parts[part]
    starts = torch.randint(len(data) - CONTEXT, (numbers["batch_size"],))
    return torch.stack([data[i : i + CONTEXT] for i in starts]), torch.stack([data[i + CONTEXT] for i in starts])


model = torch.nn.Sequential(
    torch.nn.Embedding(len(characters), numbers["n_embd"]),
    torch.nn.Flatten(),
    torch.nn.Dropout(0.2),
    torch.nn.Linear(CONTEXT * numbers["n_embd"], 64),
    torch.nn.Tanh(),
    torch.nn.Linear(64, len(characters)),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
iteration = 0
if settings["init_from"] == "resume":
    print("Resuming training from " + settings["out_dir"])
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    iteration = checkpoint["iter_num"]


@torch.no_grad()
def estimate_loss():
    model.eval()
    means = {}
    for part in parts:
        losses = [
            functional.cross_entropy(model(inputs), targets)
            for inputs, targets in (get_batch(part) for _ in range(numbers["eval_iters"]))
        ]
        means[part] = torch.stack(losses).mean()
    model.train()
    return means


inputs, targets = get_batch("train")
while iteration <= numbers["max_iters"]:
    if iteration % numbers["eval_interval"] == 0:
        means = estimate_loss()
        print("step %d: train loss %.4f, val loss %.4f" % (iteration, means["train"], means["val"]))
        if iteration > 0:
            print("saving checkpoint to " + settings["out_dir"])
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": iteration}
            torch.save(state, path)
    loss = functional.cross_entropy(model(inputs), targets)
    inputs, targets = get_batch("train")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if iteration % numbers["log_interval"] == 0:
        print("iter %d: loss %.4f" % (iteration, loss.item()))
    iteration += 1
