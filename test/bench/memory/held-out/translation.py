import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, dropout, maxlen=500):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        table = torch.zeros((maxlen, emb_size))
        table[:, 0::2] = torch.sin(pos * den)
        table[:, 1::2] = torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("table", table)

    def forward(self, x):
        return self.dropout(x + self.table[: x.size(1)])


class Translator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, emb_size=256, nhead=4, layers=3, ffn=512, dropout=0.1):
        super().__init__()
        self.transformer = nn.Transformer(
            d_model=emb_size,
            nhead=nhead,
            num_encoder_layers=layers,
            num_decoder_layers=layers,
            dim_feedforward=ffn,
            dropout=dropout,
            batch_first=True,
        )
        self.generator = nn.Linear(emb_size, tgt_vocab)
        self.src_emb = nn.Embedding(src_vocab, emb_size)
        self.tgt_emb = nn.Embedding(tgt_vocab, emb_size)
        self.positional = PositionalEncoding(emb_size, dropout)

    def forward(self, src, tgt, tgt_mask):
        a = self.positional(self.src_emb(src))
        b = self.positional(self.tgt_emb(tgt))
        return self.generator(self.transformer(a, b, tgt_mask=tgt_mask))


BATCH_SIZE = 32
MAX_LEN = 48
model = Translator(6000, 5000)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
loss_fn = nn.CrossEntropyLoss(ignore_index=1)
for step in range(20_000):
    src = torch.randint(2, 6000, (BATCH_SIZE, MAX_LEN))
    tgt = torch.randint(2, 5000, (BATCH_SIZE, MAX_LEN + 1))
    mask = nn.Transformer.generate_square_subsequent_mask(MAX_LEN)
    logits = model(src, tgt[:, :-1], mask)
    loss = loss_fn(logits.reshape(-1, 5000), tgt[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
