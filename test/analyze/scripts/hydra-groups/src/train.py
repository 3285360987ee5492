import logging
from pathlib import Path

import hydra
import torch
from hydra.utils import instantiate
from omegaconf import DictConfig

from data import make_loader
from net import SmallNet

log = logging.getLogger(__name__)


@hydra.main(version_base=None, config_path="../conf", config_name="default")
def main(cfg: DictConfig) -> float:
    torch.manual_seed(cfg.seed)
    device = torch.device(cfg.device)
    net = SmallNet(cfg.model.width, cfg.model.classes).to(device)
    optimizer = instantiate(cfg.optimizer, params=net.parameters())
    loader = make_loader(cfg.data.root, cfg.data.batch_size)
    for epoch in range(cfg.trainer.max_epochs):
        for image, label in loader:
            with torch.autocast(device_type="cuda", dtype=torch.bfloat16, enabled=cfg.trainer.amp):
                loss = torch.nn.functional.cross_entropy(net(image.to(device)), label.to(device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        log.info("epoch %d loss %.3f", epoch, loss.item())
        if (epoch + 1) % cfg.trainer.save_every == 0:
            target = Path(cfg.trainer.checkpoints)
            target.mkdir(exist_ok=True)
            torch.save(net.state_dict(), target / f"net-{epoch + 1}.pt")
    return loss.item()


if __name__ == "__main__":
    main()
