"""Flax with Orbax: a CheckpointManager that saves in the background and keeps three."""

import os
import threading
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import witness
from flax.training.train_state import TrainState

ROOT = os.path.abspath(os.environ["CRUCIBLE_CHECKPOINT_DIR"])


class Model(nn.Module):
    @nn.compact
    def __call__(self, inputs):
        return nn.Dense(1)(nn.relu(nn.Dense(128)(inputs)))


def state_of(step, state):
    leaves = jax.tree_util.tree_leaves((state.params, state.opt_state))
    return witness.digest(b"%d" % step, *(np.asarray(leaf).tobytes() for leaf in leaves))


@jax.jit
def train_step(state, inputs):
    def loss_of(params):
        return jnp.mean((state.apply_fn(params, inputs) - inputs.sum(axis=1, keepdims=True)) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradients), loss


model = Model()
params = model.init(jax.random.PRNGKey(0), jnp.ones((1, 16)))
state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
manager = ocp.CheckpointManager(ROOT, options=ocp.CheckpointManagerOptions(max_to_keep=3, save_interval_steps=10))
start = 0
if manager.latest_step() is not None:
    start = manager.latest_step()
    state = manager.restore(start, args=ocp.args.StandardRestore(state))
    witness.resumed(start, state_of(start, state))
else:
    witness.fresh()


def await_save(step, digest):
    with witness.saving(step, digest) as files:
        manager.wait_until_finished()
        for folder, _, names in os.walk(os.path.join(ROOT, str(step))):
            files += [os.path.join(folder, name) for name in names]


for step in range(start + 1, start + witness.steps_left() + 1):
    inputs = jax.random.normal(jax.random.PRNGKey(step), (32, 16))
    state, loss = train_step(state, inputs)
    time.sleep(0.14)
    witness.step(step)
    print("step %d, loss %.4f" % (step, loss), flush=True)
    if step % 10 == 0:
        witness.note("saving", step=step, state=state_of(step, state))
    if manager.save(step, args=ocp.args.StandardSave(state)):
        threading.Thread(target=await_save, args=(step, state_of(step, state))).start()
manager.wait_until_finished()
witness.finished()
