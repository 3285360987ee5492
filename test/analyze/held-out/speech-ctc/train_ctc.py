"""CTC acoustic model."""
import argparse
import logging
import pathlib

import torch
import torchaudio

log = logging.getLogger(__name__)


def collate(rows):
    waves = torch.nn.utils.rnn.pad_sequence([r[0].squeeze(0) for r in rows], batch_first=True)
    return waves, torch.ones(len(rows), 4, dtype=torch.long)


class Acoustic(torch.nn.Module):
    def __init__(self, hidden=512, tokens=29):
        super().__init__()
        self.spec = torchaudio.transforms.MelSpectrogram(n_mels=80)
        self.rnn = torch.nn.LSTM(80, hidden, num_layers=5, bidirectional=True, batch_first=True)
        self.out = torch.nn.Linear(2 * hidden, tokens)

    def forward(self, wave):
        h, _ = self.rnn(self.spec(wave).transpose(1, 2))
        return self.out(h).log_softmax(-1)


def load_run(path, **objects):
    blob = torch.load(path, map_location="cpu")
    for key, obj in objects.items():
        obj.load_state_dict(blob[key])
    return blob["next_epoch"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", type=pathlib.Path, default="data")
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--max-epochs", type=int, default=70)
    ap.add_argument("--continue-from", type=pathlib.Path)
    ns = ap.parse_args()
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ds = torchaudio.datasets.LIBRISPEECH(ns.root, url="train-clean-360", download=True)
    loader = torch.utils.data.DataLoader(ds, ns.bs, shuffle=True, collate_fn=collate)
    net = Acoustic().to(dev)
    adam = torch.optim.AdamW(net.parameters(), 3e-4)
    first = 0
    if ns.continue_from is not None:
        first = load_run(ns.continue_from, net=net, adam=adam)
    for epoch in range(first, ns.max_epochs):
        net.train()
        for wave, text in loader:
            logp = net(wave.to(dev)).transpose(0, 1)
            n = torch.full((wave.size(0),), logp.size(0), dtype=torch.long)
            loss = torch.nn.functional.ctc_loss(logp, text.to(dev), n, torch.full_like(n, 4))
            adam.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            adam.step()
        log.info("epoch %d %.3f", epoch, loss)
        torch.save(dict(net=net.state_dict(), adam=adam.state_dict(), next_epoch=epoch + 1), "runs/last.tar")


main()
