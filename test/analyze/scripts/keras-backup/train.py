import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.rand(1000, 20)
y = np.random.randint(0, 2, 1000)
inputs = keras.Input((20,))
outputs = keras.layers.Dense(1, activation="sigmoid")(keras.layers.Dense(32, activation="relu")(inputs))
model = keras.Model(inputs, outputs)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(x, y, epochs=10, callbacks=[keras.callbacks.BackupAndRestore("backup")])
