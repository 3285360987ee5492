from torch import nn


class MelNet(nn.Module):
    def __init__(self, hparams):
        super().__init__()
        self.embedding = nn.Embedding(hparams.n_symbols, hparams.symbols_embedding_dim)
        self.encoder = nn.LSTM(hparams.symbols_embedding_dim, 256, 1, batch_first=True, bidirectional=True)
        self.proj = nn.Linear(512, hparams.n_mel_channels)

    def forward(self, text):
        return self.proj(self.encoder(self.embedding(text))[0])
