import keras
import numpy as np

keras.utils.set_random_seed(1)
x = np.random.rand(200, 4)
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x.sum(1), epochs=40)
model.save("final.keras")
