from dataclasses import dataclass
import torch
import torch.nn as nn


@dataclass
class LMConfig:
    n_layer: int = 12
    block_size: int = 1024
    vocab: int = 50304
    width: int = 768


class LM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.emb = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(config.width, 12) for _ in range(config.n_layer)])
        self.head = nn.Linear(config.width, config.vocab)

    def forward(self, x, y=None):
        h = self.emb(x)
        for b in self.blocks:
            h = b(h)
        logits = self.head(h)
        loss = None if y is None else nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        return logits, loss

    def configure_optimizers(self, lr):
        return torch.optim.AdamW(self.parameters(), lr=lr)
