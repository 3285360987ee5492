import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp

tx = optax.adamw(3e-4)
params = {"w": jnp.zeros((32, 32))}
state = {"params": params, "opt": tx.init(params), "step": 0}
options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=500)
with ocp.CheckpointManager("/ckpt/run", options=options) as mngr:
    start = 0
    if mngr.latest_step() is not None:
        state = mngr.restore(mngr.latest_step(), args=ocp.args.StandardRestore(state))
        start = state["step"] + 1

    @jax.jit
    def step_fn(state, x):
        grads = jax.grad(lambda p: ((x @ p["w"]) ** 2).mean())(state["params"])
        updates, opt = tx.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt, "step": state["step"] + 1}

    for step in range(start, 10_000):
        state = step_fn(state, jnp.ones((8, 32)))
        mngr.save(step, args=ocp.args.StandardSave(state))
