"""
Trains a character-level transformer. Run with `--init_from=resume` to go on from out_dir/ckpt.pt.
"""
import math
import os
import sys
from ast import literal_eval
from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F

# defaults; overridden by --key=value
out_dir = "out-char"
eval_interval = 20
init_from = "scratch"  # or "resume"
batch_size = 8
block_size = 32
n_layer = 2
n_head = 2
n_embd = 32
dropout = 0.0
learning_rate = 1e-3
max_iters = 100
beta2 = 0.99
device = "cpu"
# -----------------------------------------------------------------------------
for word in sys.argv[1:]:
    key, value = word.lstrip("-").split("=", 1)
    if key not in globals():
        raise ValueError(f"unknown setting {key}")
    try:
        globals()[key] = literal_eval(value)
    except (ValueError, SyntaxError):
        globals()[key] = value


@dataclass
class GPTConfig:
    block_size: int = 32
    vocab_size: int = 64
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 32
    dropout: float = 0.0


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = nn.MultiheadAttention(config.n_embd, config.n_head, batch_first=True)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd), nn.GELU(), nn.Linear(4 * config.n_embd, config.n_embd)
        )

    def forward(self, x, mask):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets):
        _, length = idx.shape
        mask = torch.triu(torch.full((length, length), float("-inf"), device=idx.device), 1)
        x = self.wte(idx) + self.wpe(torch.arange(length, device=idx.device))
        for block in self.h:
            x = block(x, mask)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def get_batch(step):
    generator = torch.Generator().manual_seed(1000 + step)
    start = torch.randint(0, 4096 - block_size - 1, (batch_size,), generator=generator)
    text = (torch.arange(4096) * 7919 + torch.arange(4096) ** 2) % 64
    x = torch.stack([text[i : i + block_size] for i in start])
    y = torch.stack([text[i + 1 : i + 1 + block_size] for i in start])
    return x.to(device), y.to(device)


os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(1337)
model_args = dict(block_size=block_size, n_layer=n_layer, n_head=n_head, n_embd=n_embd, dropout=dropout)
iter_num = 0
best_loss = 1e9
if init_from == "scratch":
    model = GPT(GPTConfig(**model_args))
elif init_from == "resume":
    checkpoint = torch.load(os.path.join(out_dir, "ckpt.pt"), map_location=device)
    model = GPT(GPTConfig(**checkpoint["model_args"]))
    model.load_state_dict(checkpoint["model"])
    iter_num = checkpoint["iter_num"]
    best_loss = checkpoint["best_loss"]
model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, beta2))
if init_from == "resume":
    optimizer.load_state_dict(checkpoint["optimizer"])
    checkpoint = None

while True:
    if iter_num % eval_interval == 0 and iter_num > 0:
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "model_args": model_args,
            "iter_num": iter_num,
            "best_loss": best_loss,
        }
        print(f"step {iter_num}: saving to {out_dir}")
        torch.save(state, os.path.join(out_dir, "ckpt.pt"))
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * 0.5 * (1 + math.cos(math.pi * iter_num / max_iters))
    x, y = get_batch(iter_num)
    _, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    best_loss = min(best_loss, loss.item())
    iter_num += 1
    if iter_num >= max_iters:
        break
torch.save(model.state_dict(), os.path.join(out_dir, "final.pt"))
