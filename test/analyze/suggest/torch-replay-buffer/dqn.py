import random
from collections import deque

import gymnasium as gym
import torch

env = gym.make("CartPole-v1")
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters())
memory = deque(maxlen=1000)
state, _ = env.reset(seed=0)
for step in range(1000):
    action = int(net(torch.tensor(state)).argmax())
    after, reward, done, cut, _ = env.step(action)
    memory.append((state, action, reward))
    state = after
    old, did, gain = random.choice(memory)
    loss = (net(torch.tensor(old))[did] - gain).pow(2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
