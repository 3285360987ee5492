import pickle
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

EPOCHS, BATCH = 8, 512


def loss(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


@partial(jax.pmap, axis_name="devices")
def update(params, x, y):
    g = jax.lax.pmean(jax.grad(loss)(params, x, y), "devices")
    return jax.tree_util.tree_map(lambda p, gp: p - 0.1 * gp, params, g)


def batches(x, y, batch_size):
    for i in range(0, len(x), batch_size):
        yield x[i : i + batch_size], y[i : i + batch_size]


def main():
    n = jax.local_device_count()
    x, y = np.random.randn(8192, 64), np.random.randn(8192, 1)
    params = jax.device_put_replicated({"w": jnp.zeros((64, 1)), "b": jnp.zeros(1)}, jax.local_devices())
    for epoch in range(EPOCHS):
        for bx, by in batches(x, y, BATCH):
            params = update(params, bx.reshape(n, -1, 64), by.reshape(n, -1, 1))
    with open("params.pkl", "wb") as f:
        pickle.dump(jax.tree_util.tree_map(lambda p: p[0], params), f)


main()
