from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class LMConfig:
    block_size: int = 256
    vocab_size: int = 256
    n_layer: int = 6
    n_head: int = 6
    n_embd: int = 384


class CharLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        layer = nn.TransformerEncoderLayer(config.n_embd, config.n_head, 4 * config.n_embd, batch_first=True)
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.TransformerEncoder(layer, config.n_layer)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        t = idx.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(t, device=idx.device)
        x = self.wte(idx) + self.wpe(torch.arange(t, device=idx.device))
        logits = self.head(self.h(x, mask=mask, is_causal=True))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1)) if targets is not None else None
        return logits, loss
