"""scikit-learn: joblib.dump of an estimator that learns in parts, over the one before."""

import os
import time

import joblib
import numpy as np
import witness
from sklearn.neural_network import MLPRegressor

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "model.joblib")


def state_of(step, model):
    return witness.digest(b"%d" % step, *(each.tobytes() for each in model.coefs_ + model.intercepts_))


if os.path.exists(PATH):
    saved = joblib.load(PATH)
    model, start = saved["model"], saved["step"]
    witness.resumed(start, state_of(start, model))
else:
    model, start = MLPRegressor(hidden_layer_sizes=(128, 128), random_state=0), 0
    witness.fresh()
for step in range(start + 1, start + witness.steps_left() + 1):
    inputs = np.random.default_rng(step).normal(size=(64, 16))
    model.partial_fit(inputs, inputs.sum(axis=1))
    time.sleep(0.14)
    witness.step(step)
    print("step %d: loss %.4f" % (step, model.loss_), flush=True)
    if step % 10 == 0:
        with witness.saving(step, state_of(step, model)) as files:
            joblib.dump({"model": model, "step": step}, PATH)
            files.append(PATH)
witness.finished()
