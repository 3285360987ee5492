import numpy as np
import tensorflow as tf
from tensorflow import keras

LATENT = 16
(train, _), (_, _) = keras.datasets.fashion_mnist.load_data()
train = np.expand_dims(train, -1).astype("float32") / 255.0
ds = tf.data.Dataset.from_tensor_slices(train).shuffle(5000).batch(144)
enc = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(256, "relu"), keras.layers.Dense(2 * LATENT)])
dec = keras.Sequential([keras.layers.Dense(256, "relu"), keras.layers.Dense(784), keras.layers.Reshape((28, 28, 1))])
opt = keras.optimizers.Adam(1e-3)


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        mu, logvar = tf.split(enc(x), 2, axis=1)
        z = mu + tf.exp(logvar / 2) * tf.random.normal(tf.shape(mu))
        rec = tf.reduce_mean(tf.reduce_sum((dec(z) - x) ** 2, axis=[1, 2, 3]))
        kl = -0.5 * tf.reduce_mean(1 + logvar - mu**2 - tf.exp(logvar))
        loss = rec + kl
    weights = enc.trainable_weights + dec.trainable_weights
    opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss


for epoch in range(60):
    for x in ds:
        loss = step(x)
    tf.print(epoch, loss)
    if epoch % 5 == 4:
        enc.save_weights("enc.weights.h5")
        dec.save_weights("dec.weights.h5")
