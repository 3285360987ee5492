import keras
import numpy as np
from keras import layers

data = keras.utils.timeseries_dataset_from_array(
    np.random.rand(5000, 6), targets=np.random.rand(5000), sequence_length=24, batch_size=80
)
inputs = keras.Input(shape=(24, 6))
model = keras.Model(inputs, layers.Dense(1)(layers.Flatten()(inputs)))
model.compile(optimizer="adam", loss="mse")
model.fit(data, epochs=4, callbacks=[keras.callbacks.ModelCheckpoint("best/plain.keras", save_best_only=True)])
model = keras.models.load_model("best/plain.keras")
print(model.evaluate(data))

model = keras.Model(inputs, layers.Dense(1)(layers.LSTM(8)(inputs)))
model.compile(optimizer="adam", loss="mse")
model.fit(data, epochs=9, callbacks=[keras.callbacks.ModelCheckpoint("best/lstm.keras", save_best_only=True)])
model = keras.models.load_model("best/lstm.keras")
print(model.evaluate(data))
