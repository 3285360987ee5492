import torch

from . import nets


def evaluate(net):
    with torch.no_grad():
        return net(torch.randint(0, nets.VOCAB, (64, 5))).mean().item()


def fit(net, opt, epochs, batch_size, out):
    best = float("inf")
    for epoch in range(epochs):
        for _ in range(100):
            tokens = torch.randint(0, nets.VOCAB, (batch_size, 5))
            loss = net(tokens).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        score = evaluate(net)
        if score < best:
            best = score
            torch.save(net.state_dict(), out)
