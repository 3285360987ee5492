"""Keras's fit with dropout."""

import os

import keras
import numpy
from crucible.checkpoint.keras import CrucibleCallback
from lab import EPOCHS, OUTPUT, STEPS_OF_EPOCH, hold

keras.utils.set_random_seed(0)
x = numpy.random.randn(4 * STEPS_OF_EPOCH, 4)
y = numpy.random.randn(4 * STEPS_OF_EPOCH, 1)
model = keras.Sequential(
    [keras.Input((4,)), keras.layers.Dense(16), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
)
model.compile(optimizer="adam", loss="mse")
crucible = CrucibleCallback(model)


class Hold(keras.callbacks.Callback):
    done = crucible.steps_done

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        hold(self.done)


model.fit(
    x,
    y,
    batch_size=4,
    epochs=EPOCHS,
    initial_epoch=crucible.initial_epoch,
    shuffle=False,
    verbose=0,
    callbacks=[Hold(), crucible],
)
print("ended at step", int(model.optimizer.iterations), flush=True)
numpy.savez(os.path.join(OUTPUT, "final.npz"), *[numpy.asarray(each) for each in model.get_weights()])
