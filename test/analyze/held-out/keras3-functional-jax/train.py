import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
from keras import layers


def residual(x, filters, stride=1):
    skip = x
    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    if stride != 1:
        skip = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(skip)
    return layers.Activation("relu")(layers.Add()([x, skip]))


def build():
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(32, 3, padding="same")(inputs)
    x = residual(x, 32)
    x = residual(x, 64, 2)
    x = residual(x, 128, 2)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(100)(x))


(x_train, y_train), (x_val, y_val) = keras.datasets.cifar100.load_data()
x_train, x_val = x_train / 255.0, x_val / 255.0

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = build()
model.compile(
    optimizer=keras.optimizers.AdamW(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(
    x_train,
    y_train,
    batch_size=160,
    epochs=45,
    validation_data=(x_val, y_val),
    callbacks=[
        keras.callbacks.BackupAndRestore("backup"),
        keras.callbacks.CSVLogger("log.csv", append=True),
    ],
)
model.save("cifar100.keras")
