import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

VOCABULARY, LENGTH, WIDTH, HEADS, DEPTH = 2048, 128, 256, 8, 4


class Block(nn.Module):
    width: int
    heads: int

    @nn.compact
    def __call__(self, x, mask):
        y = nn.LayerNorm()(x)
        y = nn.MultiHeadDotProductAttention(num_heads=self.heads, qkv_features=self.width)(y, y, mask=mask)
        x = x + y
        y = nn.LayerNorm()(x)
        y = nn.Dense(4 * self.width)(y)
        y = nn.gelu(y)
        y = nn.Dense(self.width)(y)
        return x + y


class GPT(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        positions = self.param("positions", nn.initializers.normal(0.02), (LENGTH, WIDTH))
        x = nn.Embed(VOCABULARY, WIDTH)(tokens) + positions[: tokens.shape[1]]
        mask = nn.make_causal_mask(tokens)
        for _ in range(DEPTH):
            x = Block(WIDTH, HEADS)(x, mask)
        x = nn.LayerNorm()(x)
        return nn.Dense(VOCABULARY, use_bias=False)(x)


model = GPT()
params = model.init(jax.random.PRNGKey(0), jnp.zeros((1, LENGTH), jnp.int32))
optimizer = optax.adamw(3e-4, weight_decay=0.1)
opt_state = optimizer.init(params)


@jax.jit
def step(params, opt_state, tokens):
    def loss_fn(params):
        logits = model.apply(params, tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


for iteration in range(1000):
    tokens = np.random.randint(0, VOCABULARY, (16, LENGTH + 1))
    params, opt_state, loss = step(params, opt_state, tokens)
