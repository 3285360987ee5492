import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, random

LAYER_SIZES = [784, 1024, 1024, 10]
BATCH_SIZE = 128


def init_layer(inputs, outputs, key, scale=1e-2):
    w_key, b_key = random.split(key)
    return scale * random.normal(w_key, (outputs, inputs)), scale * random.normal(b_key, (outputs,))


def init_network(sizes, key):
    keys = random.split(key, len(sizes))
    return [init_layer(m, n, k) for m, n, k in zip(sizes[:-1], sizes[1:], keys)]


def predict(params, image):
    x = image
    for w, b in params[:-1]:
        x = jax.nn.relu(jnp.dot(w, x) + b)
    w, b = params[-1]
    logits = jnp.dot(w, x) + b
    return logits - jax.nn.logsumexp(logits)


batched_predict = jax.vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    return -jnp.mean(batched_predict(params, images) * targets)


@jit
def update(params, images, targets):
    grads = grad(loss)(params, images, targets)
    return [(w - 0.01 * dw, b - 0.01 * db) for (w, b), (dw, db) in zip(params, grads)]


params = init_network(LAYER_SIZES, random.PRNGKey(0))
images = np.random.rand(8192, 784).astype(np.float32)
targets = np.eye(10, dtype=np.float32)[np.random.randint(0, 10, 8192)]
for epoch in range(8):
    for start in range(0, len(images), BATCH_SIZE):
        params = update(params, images[start : start + BATCH_SIZE], targets[start : start + BATCH_SIZE])
