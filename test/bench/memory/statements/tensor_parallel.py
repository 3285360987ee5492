from dataclasses import dataclass

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.utils.data import DataLoader

from tokens import RandomTokens


@dataclass
class Args:
    dim: int = 4096
    n_layers: int = 32
    n_heads: int = 32
    vocab_size: int = 32000
    hidden: int = 11008


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n_heads = args.n_heads
        self.wq = nn.Linear(args.dim, args.dim, bias=False)
        self.wk = nn.Linear(args.dim, args.dim, bias=False)
        self.wv = nn.Linear(args.dim, args.dim, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            w(x).view(b, t, self.n_heads, d // self.n_heads).transpose(1, 2) for w in (self.wq, self.wk, self.wv)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class FeedForward(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.w1 = nn.Linear(args.dim, args.hidden, bias=False)
        self.w2 = nn.Linear(args.hidden, args.dim, bias=False)
        self.w3 = nn.Linear(args.dim, args.hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.attention = Attention(args)
        self.feed_forward = FeedForward(args)
        self.norm1 = nn.RMSNorm(args.dim)
        self.norm2 = nn.RMSNorm(args.dim)

    def forward(self, x):
        h = x + self.attention(self.norm1(x))
        return h + self.feed_forward(self.norm2(h))


class Transformer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleDict()
        for layer_id in range(args.n_layers):
            self.layers[str(layer_id)] = Block(args)
        self.norm = nn.RMSNorm(args.dim)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        for layer in self.layers.values():
            h = layer(h)
        return self.output(self.norm(h))


class Llama(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = Transformer(Args())

    def training_step(self, batch):
        output = self.model(batch[:, :-1])
        return F.cross_entropy(output.reshape(-1, output.size(-1)), batch[:, 1:].reshape(-1))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.model.parameters(), lr=3e-3, foreach=True)

    def train_dataloader(self):
        return DataLoader(RandomTokens(vocab_size=32000, seq_length=128), batch_size=8, num_workers=4)


if __name__ == "__main__":
    assert torch.cuda.device_count() >= 4, "four GPUs are needed"
    strategy = ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=2)
    trainer = L.Trainer(
        accelerator="cuda", devices=4, strategy=strategy, limit_train_batches=10, max_epochs=1
    )
    trainer.fit(Llama())
