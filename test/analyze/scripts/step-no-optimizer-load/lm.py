import argparse
import glob
import os

import torch

p = argparse.ArgumentParser()
p.add_argument("--restart", action="store_true")
p.add_argument("--iters", type=int, default=10000)
a = p.parse_args()
device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


class CharLM(torch.nn.Module):
    def __init__(self, vocab=65, width=96):
        super().__init__()
        self.e = torch.nn.Embedding(vocab, width)
        self.r = torch.nn.GRU(width, width, batch_first=True)
        self.o = torch.nn.Linear(width, vocab)

    def forward(self, x):
        h, _ = self.r(self.e(x))
        return self.o(h)


text = torch.tensor([b for b in open("input.txt", "rb").read()])
net = CharLM().to(device)
opt = torch.optim.AdamW(net.parameters(), 1e-3)
it = 0
if a.restart:
    newest = max(glob.glob("ck/*.pt"), key=os.path.getmtime)
    c = torch.load(newest, map_location=device)
    net.load_state_dict(c["net"])
    it = c["it"]
while it < a.iters:
    i = torch.randint(len(text) - 65, (32,))
    x = torch.stack([text[j : j + 64] for j in i]).to(device)
    y = torch.stack([text[j + 1 : j + 65] for j in i]).to(device)
    loss = torch.nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    it += 1
    if it % 200 == 0:
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "it": it}, f"ck/{it}.pt")
