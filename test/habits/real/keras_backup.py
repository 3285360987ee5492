"""Keras: BackupAndRestore, with a ModelCheckpoint of the best next to it."""

import os
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
import witness

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
STEPS_PER_EPOCH = 10


def state_of(model, epoch):
    weights = [*model.get_weights(), *(np.asarray(each) for each in model.optimizer.variables)]
    return witness.digest(b"%d" % epoch, *(np.ascontiguousarray(each).tobytes() for each in weights))


class Backup(keras.callbacks.BackupAndRestore):
    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        epoch = self.model._initial_epoch or 0
        if epoch > 0:
            witness.resumed(epoch * STEPS_PER_EPOCH, state_of(self.model, epoch))
        else:
            witness.fresh()

    def _save_model(self, *args, **more):
        epoch = self._current_epoch
        with witness.saving(epoch * STEPS_PER_EPOCH, state_of(self.model, epoch)) as files:
            super()._save_model(*args, **more)
            files += [os.path.join(self.backup_dir, name) for name in ("latest.weights.h5", "training_metadata.json")]


class Pace(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.14)
        witness.step(self.epoch * STEPS_PER_EPOCH + batch + 1)


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [keras.Input((16,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)]
)
model.compile(optimizer="adam", loss="mse")
inputs = np.random.default_rng(0).normal(size=(320, 16)).astype("float32")
epochs_left = max(1, witness.steps_left() // STEPS_PER_EPOCH)
backup = Backup(os.path.join(ROOT, "backup"), delete_checkpoint=False)
done = 0
if os.path.exists(backup._training_metadata_path):
    import json

    with open(backup._training_metadata_path) as file:
        done = json.load(file)["epoch"]
model.fit(
    inputs,
    inputs.sum(axis=1, keepdims=True),
    batch_size=32,
    epochs=done + epochs_left,
    verbose=2,
    callbacks=[
        Pace(),
        backup,
        keras.callbacks.ModelCheckpoint(os.path.join(ROOT, "best.keras"), monitor="loss", save_best_only=True),
    ],
)
witness.finished()
