import argparse
import os

import torch
from torch import nn
from torchvision.utils import save_image

parser = argparse.ArgumentParser()
parser.add_argument("--niter", type=int, default=25)
parser.add_argument("--batchSize", type=int, default=64)
parser.add_argument("--netG", default="", help="path to a generator to continue training")
parser.add_argument("--outf", default="out")
parser.add_argument("--cuda", action="store_true")
opt = parser.parse_args()
os.makedirs(opt.outf, exist_ok=True)
device = torch.device("cuda:0" if opt.cuda else "cpu")

generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 144), nn.Tanh()).to(device)
critic = nn.Sequential(nn.Linear(144, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to(device)
if opt.netG != "":
    generator.load_state_dict(torch.load(opt.netG))
optimizerD = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
fixed = torch.randn(64, 16, device=device)
ones, zeros = torch.ones(opt.batchSize, 1, device=device), torch.zeros(opt.batchSize, 1, device=device)
for epoch in range(opt.niter):
    for _ in range(40):
        real = torch.sin(torch.linspace(0, 6, 144, device=device)[None] * torch.rand(opt.batchSize, 1, device=device))
        fake = generator(torch.randn(opt.batchSize, 16, device=device))
        critic.zero_grad()
        (bce(critic(real), ones) + bce(critic(fake.detach()), zeros)).backward()
        optimizerD.step()
        generator.zero_grad()
        bce(critic(fake), ones).backward()
        optimizerG.step()
    save_image(generator(fixed).view(-1, 1, 12, 12), f"{opt.outf}/fake_{epoch:03d}.png", normalize=True)
    torch.save(generator.state_dict(), f"{opt.outf}/netG_{epoch}.pth")
    torch.save(critic.state_dict(), f"{opt.outf}/netD_{epoch}.pth")
