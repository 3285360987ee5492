from pathlib import Path

import torch
import typer

from .loop import fit
from .nets import Tagger


def main(lr: float = 0.1, epochs: int = 15, batch_size: int = 20, out: Path = Path("best.pt")):
    net = Tagger()
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    fit(net, opt, epochs=epochs, batch_size=batch_size, out=out)


if __name__ == "__main__":
    typer.run(main)
