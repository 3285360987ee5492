import os

import tensorflow as tf
from tensorflow.keras import layers

(images, _), _ = tf.keras.datasets.mnist.load_data()
data = tf.data.Dataset.from_tensor_slices(images / 255.0).shuffle(60000).batch(128)
maker = tf.keras.Sequential([layers.Dense(784), layers.Reshape((28, 28))])
judge = tf.keras.Sequential([layers.Flatten(), layers.Dense(1)])
maker_optimizer, judge_optimizer = tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)
prefix = os.path.join("./gan_states", "ckpt")
checkpoint = tf.train.Checkpoint(
    maker=maker, judge=judge, maker_optimizer=maker_optimizer, judge_optimizer=judge_optimizer
)


@tf.function
def step(batch):
    with tf.GradientTape() as one, tf.GradientTape() as two:
        made = maker(tf.random.normal([128, 50]))
        loss = tf.reduce_mean(judge(made) - judge(batch))
    maker_optimizer.apply_gradients(zip(one.gradient(-loss, maker.trainable_variables), maker.trainable_variables))
    judge_optimizer.apply_gradients(zip(two.gradient(loss, judge.trainable_variables), judge.trainable_variables))


for epoch in range(30):
    for batch in data:
        step(batch)
    if (epoch + 1) % 6 == 0:
        checkpoint.save(file_prefix=prefix)

checkpoint.restore(tf.train.latest_checkpoint("./gan_states"))
maker(tf.random.normal([1, 50]))
