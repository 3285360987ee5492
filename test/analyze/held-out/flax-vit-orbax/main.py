import functools

from absl import app, flags, logging
import flax.linen as nn
from flax.training import train_state
import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
import tensorflow_datasets as tfds
from ml_collections import config_flags

FLAGS = flags.FLAGS
flags.DEFINE_string("workdir", None, "Where to write.", required=True)
config_flags.DEFINE_config_file("config", "configs/default.py")


class Encoder(nn.Module):
    width: int
    heads: int

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=self.heads)(y, y)
        y = nn.LayerNorm()(x)
        y = nn.Dense(4 * self.width)(y)
        return x + nn.Dense(self.width)(nn.gelu(y))


class ViT(nn.Module):
    width: int = 192
    depth: int = 12
    heads: int = 3
    classes: int = 100

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(self.width, (4, 4), strides=(4, 4))(x)
        x = x.reshape(x.shape[0], -1, self.width)
        x = x + self.param("pos", nn.initializers.normal(0.02), (1, 64, self.width))
        for _ in range(self.depth):
            x = Encoder(self.width, self.heads)(x)
        return nn.Dense(self.classes)(nn.LayerNorm()(x).mean(1))


@functools.partial(jax.jit, donate_argnums=0)
def train_step(state, batch):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, batch["image"] / 255.0)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def main(_):
    config = FLAGS.config
    model = ViT()
    params = model.init(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))["params"]
    tx = optax.adamw(optax.cosine_decay_schedule(config.lr, config.num_steps), weight_decay=0.05)
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx)

    options = ocp.CheckpointManagerOptions(max_to_keep=3, save_interval_steps=config.save_every)
    manager = ocp.CheckpointManager(FLAGS.workdir, options=options)
    start = 0
    latest = manager.latest_step()
    if latest is not None:
        state = manager.restore(latest, args=ocp.args.StandardRestore(state))
        start = latest + 1
        logging.info("restored step %d", latest)

    ds = tfds.load("cifar100", split="train").repeat().shuffle(50_000).batch(config.batch_size)
    batches = ds.as_numpy_iterator()
    for step in range(start, config.num_steps):
        state, loss = train_step(state, next(batches))
        manager.save(step, args=ocp.args.StandardSave(state))
        if step % 100 == 0:
            logging.info("step %d loss %.3f", step, loss)
    manager.wait_until_finished()


if __name__ == "__main__":
    app.run(main)
