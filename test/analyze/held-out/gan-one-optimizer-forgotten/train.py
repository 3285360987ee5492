import argparse
import os

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--restore", action="store_true")
parser.add_argument("--rounds", type=int, default=40000)
args = parser.parse_args()

painter = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 784)).cuda()
critic = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
painter_opt = torch.optim.Adam(painter.parameters(), lr=2e-4)
critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-4)
images = torch.rand(60000, 784)
path = os.path.join("runs", "newest.pt")
os.makedirs("runs", exist_ok=True)

done = 0
if args.restore and os.path.isfile(path):
    state = torch.load(path)
    painter.load_state_dict(state["painter"])
    # painter_opt.load_state_dict(state["painter_opt"])
    critic.load_state_dict(state["critic"])
    critic_opt.load_state_dict(state["critic_opt"])
    done = state["done"]

while done < args.rounds:
    real = images[torch.randint(0, len(images), (128,))].cuda()
    fake = painter(torch.randn(128, 64).cuda())
    loss = critic(fake.detach()).mean() - critic(real).mean()
    critic_opt.zero_grad()
    loss.backward()
    critic_opt.step()
    loss = -critic(fake).mean()
    painter_opt.zero_grad()
    loss.backward()
    painter_opt.step()
    done += 1
    if done % 500 == 0:
        torch.save(
            {
                "painter": painter.state_dict(),
                "painter_opt": painter_opt.state_dict(),
                "critic": critic.state_dict(),
                "critic_opt": critic_opt.state_dict(),
                "done": done,
            },
            path,
        )
