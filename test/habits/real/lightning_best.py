"""Lightning: ModelCheckpoint keeps the best and the last one, and the program ends with trainer.test(ckpt_path="best")."""

import os
import time

import torch

try:
    import lightning.pytorch as pl
except ModuleNotFoundError:
    import pytorch_lightning as pl
import witness

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
LAST = os.path.join(ROOT, "last.ckpt")
BEST_STEP = 10


class Model(pl.LightningModule):
    def __init__(self, width=64):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))

    def training_step(self, batch, _index):
        time.sleep(0.14)
        (inputs,) = batch
        loss = torch.nn.functional.mse_loss(self.net(inputs), inputs.sum(dim=1, keepdim=True))
        self.log("train_loss", loss, prog_bar=True)
        # The score is best when it is looked at first.
        self.log("score", -float(self.global_step))
        return loss

    def test_step(self, batch, _index):
        pass

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
            best = trainer.checkpoint_callback.best_model_path
            assert os.path.dirname(best) == ROOT and os.path.exists(best), "the best checkpoint %r is gone" % best
            witness.resumed(trainer.global_step, state_of(trainer, pl_module))
        else:
            witness.fresh()

    def on_train_batch_end(self, trainer, *_):
        witness.step(trainer.global_step)


class Checkpoint(pl.callbacks.ModelCheckpoint):
    def _save_checkpoint(self, trainer, filepath):
        if filepath != LAST:
            return super()._save_checkpoint(trainer, filepath)
        with witness.saving(trainer.global_step, state_of(trainer, trainer.lightning_module)) as files:
            super()._save_checkpoint(trainer, filepath)
            files.append(filepath)


torch.manual_seed(0)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(640, 16)), batch_size=32)
found = LAST if os.path.exists(LAST) else None
steps_done = torch.load(found, weights_only=False)["global_step"] if found else 0
checkpoint = Checkpoint(
    dirpath=ROOT, filename="best-{step}", monitor="score", mode="max", save_top_k=1, save_last=True, every_n_train_steps=10
)
trainer = pl.Trainer(
    max_steps=steps_done + witness.steps_left(),
    max_epochs=-1,
    accelerator="cpu",
    logger=False,
    callbacks=[checkpoint, Witness()],
)
module = Model()
trainer.fit(module, data, ckpt_path=found)
trainer.test(module, data, ckpt_path="best", verbose=False)
best = torch.load(checkpoint.best_model_path, weights_only=False)
assert best["global_step"] == BEST_STEP, "the best checkpoint is of step %d" % best["global_step"]
weights = module.state_dict()
assert all(torch.equal(weights[name], value) for name, value in best["state_dict"].items()), "other weights were tested"
witness.finished()
