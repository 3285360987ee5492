import click
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import MNIST
from torchvision.transforms import ToTensor
from tqdm import tqdm


class Denoiser(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Conv2d(1, width, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x):
        return self.net(x)


@click.command()
@click.option("--epochs", default=100, show_default=True)
@click.option("--batch", "batch_size", type=int, default=64)
@click.option("--width", default=32)
@click.option("--load-path", type=click.Path(exists=True), default=None)
@click.option("--device", default="cuda:0")
def train(epochs, batch_size, width, load_path, device):
    ddpm = Denoiser(width)
    ddpm.to(device)
    if load_path is not None:
        ddpm.load_state_dict(torch.load(load_path))
    loader = DataLoader(MNIST("./data", download=True, transform=ToTensor()), batch_size=batch_size, shuffle=True)
    optim = torch.optim.Adam(ddpm.parameters(), lr=2e-4)
    for i in range(epochs):
        pbar = tqdm(loader)
        for x, _ in pbar:
            optim.zero_grad()
            x = x.to(device)
            noise = torch.randn_like(x)
            loss = torch.nn.functional.mse_loss(ddpm(x + noise), noise)
            loss.backward()
            optim.step()
            pbar.set_description(f"loss: {loss.item():.4f}")
        torch.save(ddpm.state_dict(), "./ddpm.pth")


if __name__ == "__main__":
    train()
