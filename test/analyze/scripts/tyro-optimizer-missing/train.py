from dataclasses import dataclass
from pathlib import Path

import torch
import tyro


@dataclass
class Config:
    steps: int = 20000
    batch_size: int = 256
    lr: float = 3e-4
    ckpt_dir: Path = Path("ckpts")
    resume_step: int = 0


def main(cfg: Config):
    assert torch.cuda.is_available(), "needs CUDA"
    model = torch.nn.Sequential(torch.nn.Linear(63, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4)).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    step = 0
    if cfg.resume_step > 0:
        saved = torch.load(cfg.ckpt_dir / f"{cfg.resume_step:06d}.pt")
        model.load_state_dict(saved["model"])
        step = saved["step"]
    while step < cfg.steps:
        rays = torch.randn(cfg.batch_size, 63, device="cuda")
        loss = (model(rays) - 0.5).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 2000 == 0:
            torch.save({"model": model.state_dict(), "step": step}, cfg.ckpt_dir / f"{step:06d}.pt")


main(tyro.cli(Config))
