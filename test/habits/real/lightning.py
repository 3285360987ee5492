"""Lightning: ModelCheckpoint below default_root_dir; a start continues from the newest .ckpt of all versions."""

import glob
import os
import time

import torch

try:
    import lightning.pytorch as pl
except ModuleNotFoundError:
    import pytorch_lightning as pl
import witness

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


class Model(pl.LightningModule):
    def __init__(self, width=64):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))

    def training_step(self, batch, _index):
        time.sleep(0.14)
        (inputs,) = batch
        loss = torch.nn.functional.mse_loss(self.net(inputs), inputs.sum(dim=1, keepdim=True))
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def state_of(trainer, module):
    tensors = [*module.state_dict().values()]
    for slot in trainer.optimizers[0].state_dict()["state"].values():
        tensors += [value for value in slot.values() if torch.is_tensor(value)]
    return witness.digest(b"%d" % trainer.global_step, *(each.detach().numpy().tobytes() for each in tensors))


class Witness(pl.Callback):
    def on_train_start(self, trainer, pl_module):
        if trainer.global_step > 0:
            witness.resumed(trainer.global_step, state_of(trainer, pl_module))
        else:
            witness.fresh()

    def on_train_batch_end(self, trainer, *_):
        witness.step(trainer.global_step)


class Checkpoint(pl.callbacks.ModelCheckpoint):
    def _save_checkpoint(self, trainer, filepath):
        with witness.saving(trainer.global_step, state_of(trainer, trainer.lightning_module)) as files:
            super()._save_checkpoint(trainer, filepath)
            files.append(filepath)


torch.manual_seed(0)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(640, 16)), batch_size=32)
found = sorted(glob.glob(os.path.join(ROOT, "**", "*.ckpt"), recursive=True), key=os.path.getmtime)
steps_done = torch.load(found[-1])["global_step"] if found else 0
trainer = pl.Trainer(
    default_root_dir=ROOT,
    max_steps=steps_done + witness.steps_left(),
    max_epochs=-1,
    accelerator="cpu",
    log_every_n_steps=5,
    callbacks=[Checkpoint(every_n_train_steps=10), Witness()],
)
trainer.fit(Model(), data, ckpt_path=found[-1] if found else None)
witness.finished()
