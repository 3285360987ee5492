import time
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn


class QNet(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, actions))

    def forward(self, x):
        return self.net(x)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    env = gym.make("LunarLander-v3")
    q = QNet(8, 4).to(device)
    target = QNet(8, 4).to(device)
    target.load_state_dict(q.state_dict())
    optim = torch.optim.RMSprop(q.parameters(), lr=2.5e-4)
    memory = deque(maxlen=200_000)

    obs, _ = env.reset()
    frame = 0
    last_save = time.time()
    while True:
        eps = max(0.02, 1 - frame / 50_000)
        if np.random.rand() < eps:
            action = env.action_space.sample()
        else:
            action = q(torch.as_tensor(obs, device=device)).argmax().item()
        nxt, reward, term, trunc, _ = env.step(action)
        memory.append((obs, action, reward, nxt, term))
        obs = nxt
        frame += 1
        if term or trunc:
            obs, _ = env.reset()
        if len(memory) < 5000:
            continue
        picks = [memory[i] for i in np.random.randint(0, len(memory), 64)]
        s, a, r, s2, d = (torch.as_tensor(np.array(v), device=device) for v in zip(*picks))
        with torch.no_grad():
            goal = r.float() + 0.99 * target(s2).max(1).values * (1 - d.float())
        loss = nn.functional.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), goal)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if frame % 1000 == 0:
            target.load_state_dict(q.state_dict())
        if time.time() - last_save > 600:
            torch.save(q.state_dict(), "qnet.pt")
            last_save = time.time()


if __name__ == "__main__":
    main()
