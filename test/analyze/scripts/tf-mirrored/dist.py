import os
import tensorflow as tf
import tensorflow_datasets as tfds

strategy = tf.distribute.MirroredStrategy()
ds = tfds.load("mnist", split="train", as_supervised=True).batch(64 * strategy.num_replicas_in_sync)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    model.compile(loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), optimizer="adam")
latest = tf.train.latest_checkpoint("./training_checkpoints")
if latest:
    model.load_weights(latest)
cb = tf.keras.callbacks.ModelCheckpoint(os.path.join("./training_checkpoints", "ckpt_{epoch}"), save_weights_only=True)
model.fit(ds, epochs=12, callbacks=[cb])
