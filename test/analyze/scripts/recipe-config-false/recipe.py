import sys

import torch
from torchtune import config, training, utils
from torchtune.training.checkpointing._checkpoint_client import CheckpointClient


class Recipe:
    def __init__(self, cfg):
        self.device = utils.get_device(device=cfg.device)
        self.again = cfg.resume_from_checkpoint
        self.done = 0
        self.epochs = cfg.epochs
        self.keeper = CheckpointClient(cfg)

    def setup(self, cfg):
        saved = self.keeper.load_base_checkpoint()
        self.net = config.instantiate(cfg.model)
        self.net.load_state_dict(saved[training.MODEL_KEY])
        self.opt = config.instantiate(cfg.optimizer, self.net.parameters())
        if self.again:
            self.opt.load_state_dict(saved[training.OPT_KEY])
            self.done = saved[training.EPOCHS_KEY]
        self.loader = torch.utils.data.DataLoader(config.instantiate(cfg.dataset), batch_size=cfg.batch_size)

    def train(self):
        for epoch in range(self.done, self.epochs):
            for batch in self.loader:
                self.net(batch["tokens"]).mean().backward()
                self.opt.step()
                self.opt.zero_grad()
            self.keeper.save_checkpoint(model=self.net, optimizer=self.opt, epoch=epoch)


@config.parse
def main(cfg):
    recipe = Recipe(cfg)
    recipe.setup(cfg)
    recipe.train()


if __name__ == "__main__":
    sys.exit(main())
