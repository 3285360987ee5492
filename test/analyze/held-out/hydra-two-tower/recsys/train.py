import logging
from pathlib import Path

import hydra
import torch
from hydra.utils import instantiate
from omegaconf import DictConfig
from torch.utils.data import DataLoader

from recsys.data import Interactions

log = logging.getLogger(__name__)


def fit(cfg: DictConfig) -> None:
    device = torch.device(cfg.device if cfg.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    data = Interactions(cfg.data.root)
    loader = DataLoader(data, batch_size=cfg.data.batch_size, shuffle=True, num_workers=cfg.data.workers)
    model = instantiate(cfg.model, users=data.users, items=data.items).to(device)
    optimizer = instantiate(cfg.optimizer, params=model.parameters())

    last = Path(cfg.trainer.checkpoint_dir) / "last.pt"
    first = 0
    if cfg.trainer.resume and last.exists():
        saved = torch.load(last, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"] + 1

    last.parent.mkdir(parents=True, exist_ok=True)
    for epoch in range(first, cfg.trainer.epochs):
        model.train()
        total = 0.0
        for user, item in loader:
            user, item = user.to(device), item.to(device)
            scores = model(user, item)
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(user), device=device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        log.info("epoch %d loss %.4f", epoch, total / len(loader))
        if (epoch + 1) % cfg.trainer.save_every == 0:
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, last
            )


@hydra.main(version_base=None, config_path="../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    torch.manual_seed(cfg.seed)
    fit(cfg)


if __name__ == "__main__":
    main()
