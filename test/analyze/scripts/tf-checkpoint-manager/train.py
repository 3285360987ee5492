import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_integer("epochs", 40, "passes over the data")
flags.DEFINE_integer("batch_size", 256, "examples per step")
flags.DEFINE_string("workdir", "/tmp/work", "where checkpoints go")


class Tiny(tf.Module):
    def __init__(self):
        self.w = tf.Variable(tf.random.normal([784, 10]))

    def __call__(self, x):
        return tf.reshape(x, [-1, 784]) @ self.w


def main(_):
    (x, y), _unused = tf.keras.datasets.mnist.load_data()
    ds = tf.data.Dataset.from_tensor_slices((x / 255.0, y)).shuffle(1000).batch(FLAGS.batch_size)
    model = Tiny()
    opt = tf.keras.optimizers.SGD(0.1)
    epoch = tf.Variable(0)
    ckpt = tf.train.Checkpoint(model=model, optimizer=opt, epoch=epoch)
    manager = tf.train.CheckpointManager(ckpt, FLAGS.workdir, max_to_keep=3)
    ckpt.restore(manager.latest_checkpoint)
    while int(epoch) < FLAGS.epochs:
        for bx, by in ds:
            with tf.GradientTape() as tape:
                logits = model(tf.cast(bx, tf.float32))
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(by, logits))
            opt.apply_gradients([(tape.gradient(loss, model.w), model.w)])
        epoch.assign_add(1)
        manager.save()


if __name__ == "__main__":
    app.run(main)
