"""Classifies points of two spirals; survives preemption with Keras' own backup."""
import argparse
import os

import keras
import numpy as np
from keras import layers


def spirals(count, seed=0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.5, 3.0, count) * np.pi
    label = rng.integers(0, 2, count)
    radius = angle / (3 * np.pi) * np.where(label == 1, 1, -1)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points.astype("float32"), label.astype("float32")


def build():
    model = keras.Sequential(
        [
            keras.Input(shape=(2,)),
            layers.Dense(32, activation="tanh"),
            layers.Dense(32, activation="tanh"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--backup-dir", default="backup")
    args = parser.parse_args()
    keras.utils.set_random_seed(7)
    x, y = spirals(2048)
    callbacks = [
        keras.callbacks.BackupAndRestore(backup_dir=args.backup_dir),
        keras.callbacks.CSVLogger("history.csv", append=True),
    ]
    model = build()
    model.fit(x, y, epochs=args.epochs, batch_size=args.batch_size, shuffle=False, callbacks=callbacks)
    model.save_weights("final.weights.h5")
