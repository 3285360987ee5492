import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class AutoEncoder(nnx.Module):
    def __init__(self, inputs, hidden, latent, *, rngs: nnx.Rngs):
        self.encoder = nnx.Linear(inputs, hidden, rngs=rngs)
        self.norm = nnx.BatchNorm(hidden, rngs=rngs)
        self.code = nnx.Linear(hidden, latent, rngs=rngs)
        self.decoder = nnx.Linear(latent, hidden, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.out = nnx.Linear(hidden, inputs, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.encoder(x)))
        x = self.code(x)
        x = self.dropout(nnx.relu(self.decoder(x)))
        return nnx.sigmoid(self.out(x))


model = AutoEncoder(1024, 512, 32, rngs=nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, batch):
    def loss_fn(model):
        return jnp.mean((model(batch) - batch) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


data = np.random.rand(4096, 1024).astype(np.float32)
for epoch in range(20):
    for start in range(0, len(data), 256):
        loss = train_step(model, optimizer, data[start : start + 256])
