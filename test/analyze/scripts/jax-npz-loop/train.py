import argparse
import os
import pickle

import jax
import jax.numpy as jnp
import numpy as np


def init(key, sizes):
    layers = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        layers.append((jax.random.normal(sub, (fan_in, fan_out)) / fan_in**0.5, jnp.zeros(fan_out)))
    return layers


def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def update(params, momentum, x, y, lr):
    grads = jax.grad(loss_fn)(params, x, y)
    momentum = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, momentum, grads)
    params = jax.tree_util.tree_map(lambda p, m: p - lr * m, params, momentum)
    return params, momentum


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--state", default="state/latest.pkl")
    args = parser.parse_args()
    params = init(jax.random.PRNGKey(0), [4, 32, 1])
    momentum = jax.tree_util.tree_map(jnp.zeros_like, params)
    first = 0
    if os.path.isfile(args.state):
        with open(args.state, "rb") as file:
            params, momentum, first = pickle.load(file)
    os.makedirs(os.path.dirname(args.state), exist_ok=True)
    for i in range(first, args.iterations):
        rng = np.random.default_rng(i)
        x = rng.normal(size=(64, 4)).astype("float32")
        params, momentum = update(params, momentum, x, np.prod(x, axis=1, keepdims=True), 1e-2)
        if (i + 1) % 20 == 0:
            with open(args.state + ".part", "wb") as file:
                pickle.dump(jax.device_get((params, momentum, i + 1)), file)
            os.replace(args.state + ".part", args.state)
            print("iteration", i + 1)
    np.savez("final.npz", *[np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(params)])


if __name__ == "__main__":
    main()
