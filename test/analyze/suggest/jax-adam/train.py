import time

import jax
import jax.numpy as jnp
import numpy as np
import optax


def predict(params, x):
    return jnp.tanh(x @ params["w1"]) @ params["w2"]


def loss_fn(params, x):
    return jnp.mean((predict(params, x) - jnp.prod(x, axis=1, keepdims=True)) ** 2)


tx = optax.adam(1e-2)


@jax.jit
def update(params, opt_state, x):
    loss, grads = jax.value_and_grad(loss_fn)(params, x)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    key = jax.random.PRNGKey(0)
    key, one, two = jax.random.split(key, 3)
    params = {"w1": jax.random.normal(one, (4, 16)), "w2": jax.random.normal(two, (16, 1))}
    opt_state = tx.init(params)
    for step in range(100):
        key, batch = jax.random.split(key)
        params, opt_state, loss = update(params, opt_state, jax.random.normal(batch, (32, 4)))
        print("step", step, float(loss), flush=True)
        time.sleep(0.02)
    np.savez("final.npz", **{name: np.asarray(value) for name, value in params.items()})


main()
