import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 20000, "Training steps.")
flags.DEFINE_integer("batch", 96, "Examples per step.")
flags.DEFINE_string("model_dir", "model", "Where checkpoints go.")
flags.DEFINE_integer("save_steps", 500, "Steps between checkpoints.")


def dataset():
    (images, labels), _ = tf.keras.datasets.cifar10.load_data()
    data = tf.data.Dataset.from_tensor_slices((images / 255.0, labels[:, 0]))
    return data.shuffle(10000).repeat().batch(FLAGS.batch)


def main(_):
    model = tf.keras.applications.MobileNetV2(input_shape=(32, 32, 3), weights=None, classes=10)
    optimizer = tf.keras.optimizers.Adam(1e-3)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy()
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    manager = tf.train.CheckpointManager(checkpoint, FLAGS.model_dir, max_to_keep=2)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    for images, labels in dataset():
        loss = train_step(images, labels)
        step.assign_add(1)
        if int(step) % FLAGS.save_steps == 0:
            manager.save()
        if int(step) >= FLAGS.steps:
            break
    print(float(loss))


if __name__ == "__main__":
    app.run(main)
