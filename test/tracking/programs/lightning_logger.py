"""Lightning's fit with the logger of a tracker."""

import os
import sys

import torch
from lab import FOLDER, STEPS, wait_to_be_killed
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ModelCheckpoint


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.save_hyperparameters({"rate": 0.1})
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        loss = self.layer(batch).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Slow(Callback):
    def on_train_batch_end(self, trainer, *_):
        print("step %d/%d" % (trainer.global_step, STEPS), flush=True)
        # A checkpoint is complete once the next one was begun.
        wait_to_be_killed(trainer.global_step - 1)


def logger():
    if sys.argv[1] == "wandb":
        from lightning.pytorch.loggers import WandbLogger

        return WandbLogger(project="lightning")
    from lightning.pytorch.loggers import MLFlowLogger

    uri = os.environ["MLFLOW_TRACKING_URI"]
    return MLFlowLogger(tracking_uri=uri, run_id=os.environ.get("MLFLOW_RUN_ID"))


trainer = Trainer(
    max_steps=STEPS,
    logger=logger(),
    log_every_n_steps=1,
    callbacks=[ModelCheckpoint(FOLDER, every_n_train_steps=1, save_top_k=-1), Slow()],
    enable_progress_bar=False,
    enable_model_summary=False,
    accelerator="cpu",
)
trainer.fit(
    Model(),
    torch.utils.data.DataLoader(torch.ones(STEPS, 4)),
    ckpt_path=os.environ.get("CRUCIBLE_RESUME_FROM"),
)
