import argparse
import glob
import re

import numpy as np
import tensorflow as tf
from tensorflow import keras

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="sales.npz")
parser.add_argument("--epochs", type=int, default=80)
parser.add_argument("--batch", type=int, default=200)
args = parser.parse_args()

with np.load(args.data) as f:
    series, target = f["x"], f["y"]


def latest():
    found = glob.glob("runs/ep-*.keras")
    if not found:
        return None, 0
    path = max(found, key=lambda p: int(re.search(r"ep-(\d+)", p).group(1)))
    return path, int(re.search(r"ep-(\d+)", path).group(1))


path, done = latest()
if path:
    model = keras.models.load_model(path)
else:
    model = keras.Sequential(
        [
            keras.layers.Input((96, 12)),
            keras.layers.LSTM(128, return_sequences=True),
            keras.layers.LSTM(64),
            keras.layers.Dense(24),
        ]
    )
    model.compile("adam", "mae")

model.fit(
    tf.data.Dataset.from_tensor_slices((series, target)).shuffle(10_000).batch(args.batch),
    initial_epoch=done,
    epochs=args.epochs,
    callbacks=[keras.callbacks.ModelCheckpoint("runs/ep-{epoch:03d}.keras")],
)
