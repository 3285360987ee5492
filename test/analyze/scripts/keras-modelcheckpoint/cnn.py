import tensorflow as tf
from tensorflow.keras import layers
from tensorflow.keras.callbacks import EarlyStopping, ModelCheckpoint

(x_train, y_train), (x_test, y_test) = tf.keras.datasets.cifar10.load_data()
model = tf.keras.Sequential(
    [layers.Input((32, 32, 3)), layers.Conv2D(32, 3, activation="relu"), layers.Flatten(), layers.Dense(10)]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
cbs = [ModelCheckpoint("ckpt/{epoch:02d}.keras"), EarlyStopping(patience=5)]
model.fit(x_train / 255.0, y_train, batch_size=128, epochs=30, validation_data=(x_test / 255.0, y_test), callbacks=cbs)
