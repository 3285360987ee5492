"""Lightning's fit with a shuffled loader and dropout."""

import os

import torch
from crucible.checkpoint.lightning import CrucibleCheckpoint
from lab import EPOCHS, OUTPUT, SAVE_EVERY, STEPS_OF_EPOCH, hold
from lightning.pytorch import LightningModule, Trainer, seed_everything

seed_everything(0)


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layers(x), y)
        self.log("loss", loss)
        hold(self.global_step + 1)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)


data = torch.utils.data.TensorDataset(torch.randn(4 * STEPS_OF_EPOCH, 4), torch.randn(4 * STEPS_OF_EPOCH, 1))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
checkpoint = CrucibleCheckpoint(every_steps=SAVE_EVERY)
trainer = Trainer(
    max_epochs=EPOCHS,
    callbacks=[checkpoint],
    enable_checkpointing=False,
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    accelerator="cpu",
    log_every_n_steps=1,
)
model = Model()
trainer.fit(model, loader, ckpt_path=checkpoint.resume_path())
print("ended at step", trainer.global_step, flush=True)
torch.save(model.state_dict(), os.path.join(OUTPUT, "final.pt"))
