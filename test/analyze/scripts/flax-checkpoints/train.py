from absl import app, flags
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import checkpoints, train_state

flags.DEFINE_string("workdir", None, "directory")
flags.DEFINE_integer("num_steps", 20000, "steps")
flags.DEFINE_integer("batch", 128, "batch size")
FLAGS = flags.FLAGS


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(10)(nn.relu(nn.Dense(256)(x)))


@jax.jit
def train_step(state, x, y):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def main(argv):
    del argv
    rng = jax.random.PRNGKey(0)
    model = MLP()
    params = model.init(rng, jnp.ones([1, 784]))["params"]
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
    state = checkpoints.restore_checkpoint(FLAGS.workdir, state)
    first = int(state.step)
    for step in range(first, FLAGS.num_steps):
        x = jax.random.normal(rng, (FLAGS.batch, 784))
        y = jnp.zeros((FLAGS.batch,), jnp.int32)
        state, loss = train_step(state, x, y)
        if (step + 1) % 1000 == 0:
            checkpoints.save_checkpoint(FLAGS.workdir, state, step + 1, keep=3)


if __name__ == "__main__":
    app.run(main)
