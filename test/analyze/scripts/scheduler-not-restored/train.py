import click
import torch
from torch import nn


@click.command()
@click.option("--epochs", default=10)
@click.option("--resume", type=click.Path(), default=None)
def main(epochs, resume):
    torch.manual_seed(0)
    x = torch.randn(256, 6)
    y = x[:, :1] * x[:, 1:2]
    model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
    first = 0
    if resume is not None:
        saved = torch.load(resume)
        model.load_state_dict(saved["model"])
        first = saved["epoch"] + 1
    for epoch in range(first, epochs):
        for part in range(0, 256, 32):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[part : part + 32]), y[part : part + 32])
            loss.backward()
            optimizer.step()
        scheduler.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pt")
        print("epoch", epoch, loss.item())
    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
