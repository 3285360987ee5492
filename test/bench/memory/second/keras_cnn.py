import keras
import numpy as np
from keras import layers

inputs = keras.Input(shape=(64, 64, 3))
x = layers.Rescaling(1.0 / 255)(inputs)
for filters in (32, 64, 128):
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    residual = x
    x = layers.SeparableConv2D(filters, 3, padding="same")(x)
    x = layers.add([x, residual])
    x = layers.MaxPooling2D()(x)
x = layers.GlobalAveragePooling2D()(x)
x = layers.Dropout(0.3)(x)
outputs = layers.Dense(10, activation="softmax")(x)
model = keras.Model(inputs, outputs)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])

images = np.random.randint(0, 255, (256, 64, 64, 3)).astype("float32")
labels = np.random.randint(0, 10, 256)
model.fit(images, labels, batch_size=32, epochs=15)
