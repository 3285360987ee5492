"""LightGBM: save_model from a callback into snapshots, resumed with init_model."""

import os
import time

import lightgbm as lgb
import numpy as np
import witness

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def rounds_of(name):
    return int(name.rpartition("_")[2][: -len(".txt")])


def state_of(step, booster):
    # The text from the first tree to the end of the last; what follows are the parameters of this start.
    text = booster.model_to_string()
    return witness.digest(b"%d" % step, text[text.index("Tree=0") : text.index("end of trees")].encode())


def save(env):
    done = env.model.num_trees()
    time.sleep(0.14)
    witness.step(done)
    if done % 10 == 0:
        path = os.path.join(ROOT, "snapshot_iter_%d.txt" % done)
        with witness.saving(done, state_of(done, env.model)) as files:
            env.model.save_model(path)
            files.append(path)


found = sorted((name for name in os.listdir(ROOT) if name.startswith("snapshot_iter_")), key=rounds_of)
before = None
if found:
    before = lgb.Booster(model_file=os.path.join(ROOT, found[-1]))
    witness.resumed(before.num_trees(), state_of(before.num_trees(), before))
else:
    witness.fresh()
inputs = np.random.default_rng(0).normal(size=(500, 8))
lgb.train(
    {"objective": "regression", "num_leaves": 7, "verbose": -1, "seed": 0, "num_threads": 1},
    lgb.Dataset(inputs, label=inputs.sum(axis=1), free_raw_data=False),
    num_boost_round=min(witness.steps_left(), 10_000),
    init_model=before,
    callbacks=[save],
)
witness.finished()
