import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import tensorflow_datasets as tfds
from flax import jax_utils
from flax.training import checkpoints


class Net(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(10)(nn.relu(nn.Dense(self.width)(x)))


def make_update(apply, tx):
    def update(params, opt_state, batch):
        def loss_of(params):
            logits = apply({"params": params}, batch["image"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

        grads = jax.lax.pmean(jax.grad(loss_of)(params), axis_name="batch")
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state

    return jax.pmap(update, axis_name="batch", donate_argnums=(0,))


def fit(config, workdir):
    data = tfds.load(config.data, split="train").repeat().batch(config.batch)
    net = Net(config.width)
    params = net.init(jax.random.PRNGKey(0), jnp.ones((1, 784)))["params"]
    tx = optax.sgd(0.1, momentum=0.9)
    first, opt_state = 1, tx.init(params)
    params, opt_state, first = checkpoints.restore_checkpoint(workdir, (params, opt_state, first))
    params, opt_state = jax_utils.replicate((params, opt_state))
    update = make_update(net.apply, tx)
    for step, batch in zip(range(first, config.steps + 1), tfds.as_numpy(data)):
        params, opt_state = update(params, opt_state, batch)
        if config.save_every and step % config.save_every == 0:
            state = (jax_utils.unreplicate(params), jax_utils.unreplicate(opt_state), step)
            checkpoints.save_checkpoint(workdir, state, step)
