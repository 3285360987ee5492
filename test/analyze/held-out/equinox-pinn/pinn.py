"""Physics-informed network for the heat equation, in Equinox."""
import json
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

STEPS = 30_000
POINTS = 4096
OUT = pathlib.Path("pinn_out")

key = jax.random.PRNGKey(11)
model = eqx.nn.MLP(in_size=2, out_size="scalar", width_size=128, depth=5, activation=jnp.tanh, key=key)


def residual(net, x, t):
    u = lambda x, t: net(jnp.stack([x, t]))
    u_t = jax.grad(u, 1)(x, t)
    u_xx = jax.grad(jax.grad(u, 0), 0)(x, t)
    return u_t - 0.1 * u_xx


@eqx.filter_value_and_grad
def loss_fn(net, pts):
    inner = jax.vmap(lambda p: residual(net, p[0], p[1]))(pts)
    start = jax.vmap(lambda p: net(jnp.stack([p[0], 0.0])) - jnp.sin(jnp.pi * p[0]))(pts)
    return jnp.mean(inner**2) + jnp.mean(start**2)


opt = optax.adam(optax.exponential_decay(1e-3, 5000, 0.5))
opt_state = opt.init(eqx.filter(model, eqx.is_array))

if (OUT / "model.eqx").exists():
    model = eqx.tree_deserialise_leaves(OUT / "model.eqx", model)


@eqx.filter_jit
def step_fn(net, opt_state, key):
    loss, grads = loss_fn(net, jax.random.uniform(key, (POINTS, 2)))
    updates, opt_state = opt.update(grads, opt_state)
    return eqx.apply_updates(net, updates), opt_state, loss


OUT.mkdir(exist_ok=True)
for step in range(STEPS):
    key, sub = jax.random.split(key)
    model, opt_state, loss = step_fn(model, opt_state, sub)
    if step % 2500 == 0:
        eqx.tree_serialise_leaves(OUT / "model.eqx", model)
        (OUT / "loss.json").write_text(json.dumps({"step": step, "loss": float(loss)}))
