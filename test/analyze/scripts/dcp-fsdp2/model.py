import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, vocab, width, depth):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True, norm_first=True) for _ in range(depth)
        )
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())
