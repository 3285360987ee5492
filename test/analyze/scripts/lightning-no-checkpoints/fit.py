import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader
from my_private_data import Pairs


class GAN(LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.g = torch.nn.Linear(8, 8)
        self.d = torch.nn.Linear(8, 1)

    def training_step(self, batch, i):
        g_opt, d_opt = self.optimizers()
        loss = self.d(self.g(batch)).mean()
        self.manual_backward(loss)
        g_opt.step()
        d_opt.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.g.parameters()), torch.optim.Adam(self.d.parameters())


trainer = Trainer(accelerator="gpu", devices=1, precision="16-mixed", max_steps=2000, enable_checkpointing=False, logger=False)
gan = GAN()
trainer.fit(gan, DataLoader(Pairs(), batch_size=64))
torch.save(gan.g.state_dict(), "generator.pt")
