import torch
from torch import nn
from torch.nn import functional as F

from tinygpt.utils import CfgNode as CN


class GPT(nn.Module):
    @staticmethod
    def get_default_config():
        C = CN()
        C.model_type = "gpt"
        C.n_layer = None
        C.n_head = None
        C.n_embd = None
        C.vocab_size = None
        C.block_size = None
        return C

    def __init__(self, config):
        super().__init__()
        sizes = {
            "gpt-mini": dict(n_layer=6, n_head=6, n_embd=192),
            "gpt-nano": dict(n_layer=3, n_head=3, n_embd=48),
        }
        config.merge_from_dict(sizes[config.model_type])
        layer = nn.TransformerEncoderLayer(config.n_embd, config.n_head, batch_first=True)
        self.tok = nn.Embedding(config.vocab_size, config.n_embd)
        self.pos = nn.Parameter(torch.zeros(1, config.block_size, config.n_embd))
        self.blocks = nn.TransformerEncoder(layer, config.n_layer)
        self.head = nn.Linear(config.n_embd, config.vocab_size)

    def configure_optimizers(self, train_config):
        return torch.optim.AdamW(self.parameters(), lr=train_config.learning_rate, betas=train_config.betas)

    def forward(self, idx, targets):
        x = self.tok(idx) + self.pos[:, : idx.size(1)]
        logits = self.head(self.blocks(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
