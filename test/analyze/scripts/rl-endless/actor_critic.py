import argparse
from itertools import count

import gymnasium as gym
import torch
import torch.nn as nn

ap = argparse.ArgumentParser()
ap.add_argument("--gamma", type=float, default=0.99)
ap.add_argument("--save-interval", type=int, default=50)
args = ap.parse_args()
env = gym.make("CartPole-v1")
policy = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-2)


def play():
    state, _ = env.reset()
    rewards, logs = [], []
    for t in range(1, 10000):
        probs = torch.softmax(policy(torch.tensor(state)), -1)
        dist = torch.distributions.Categorical(probs)
        action = dist.sample()
        state, r, done, _, _ = env.step(action.item())
        rewards.append(r)
        logs.append(dist.log_prob(action))
        if done:
            break
    return rewards, logs


for episode in count(1):
    rewards, logs = play()
    loss = -(torch.stack(logs) * sum(rewards)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % args.save_interval == 0:
        torch.save(policy.state_dict(), "policy.pt")
