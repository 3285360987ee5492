import os

import jax
import jax.numpy as jnp
import optax
from absl import app, flags
from flax import nnx
from flax.training import checkpoints

from lm import layers

_DIR = flags.DEFINE_string("dir", "/tmp/lm", "Output.")
_STEPS = flags.DEFINE_integer("steps", 2000, "Training steps.")
_WARM = flags.DEFINE_bool("warm", True, "Begin with saved parameters if there are any.")


def main(_):
    params = layers.init(jax.random.key(0))
    tx = optax.adamw(1e-3)
    opt_state = tx.init(params)
    if _WARM.value and os.path.exists(_DIR.value):
        params = checkpoints.restore_checkpoint(_DIR.value, params)

    @jax.jit
    def update(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(layers.loss)(params, tokens)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    for i in range(_STEPS.value):
        tokens = jax.random.randint(jax.random.key(i), (8, 128), 0, 1000)
        params, opt_state, loss = update(params, opt_state, tokens)
        if i % 100 == 0:
            checkpoints.save_checkpoint(_DIR.value, params, i, overwrite=True)


if __name__ == "__main__":
    app.run(main)
