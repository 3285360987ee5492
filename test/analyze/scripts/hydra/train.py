import hydra
import torch
from omegaconf import DictConfig, OmegaConf

from src.nets import build


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg: DictConfig) -> None:
    print(OmegaConf.to_yaml(cfg))
    torch.manual_seed(cfg.seed)
    device = torch.device(cfg.device)
    net = build(cfg.model).to(device)
    optim = getattr(torch.optim, cfg.optimizer.name)(net.parameters(), lr=cfg.optimizer.lr)
    epoch0 = 0
    if cfg.trainer.resume_path is not None:
        blob = torch.load(cfg.trainer.resume_path)
        net.load_state_dict(blob["net"])
        optim.load_state_dict(blob["optim"])
        epoch0 = blob["epoch"]
    loader = torch.utils.data.DataLoader(torch.randn(5000, cfg.model.width), batch_size=cfg.trainer.batch_size)
    for epoch in range(epoch0, cfg.trainer.epochs):
        for x in loader:
            loss = net(x.to(device)).pow(2).mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
        if epoch % cfg.trainer.save_every == 0:
            torch.save({"net": net.state_dict(), "optim": optim.state_dict(), "epoch": epoch + 1}, f"ep{epoch}.pt")


if __name__ == "__main__":
    main()
