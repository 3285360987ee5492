import keras
import numpy as np

keras.utils.set_random_seed(1)
x = np.random.rand(200, 4)
y = x.sum(1)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")


class Rows(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()
        self.order: np.ndarray = np.arange(len(x))

    def __len__(self):
        return 10

    def __getitem__(self, at):
        rows = self.order[at * 20 : at * 20 + 20]
        return x[rows], y[rows]

    def on_epoch_end(self):
        self.order = np.random.permutation(self.order)


model.fit(Rows(), epochs=40)
model.save("final.keras")
