"""XGBoost: its TrainingCheckPoint callback, resumed with xgb_model."""

import os
import re
import time

import numpy as np
import witness
import xgboost as xgb

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
INTERVAL = 10


def rounds_of(name):
    return int(re.search(r"_(\d+)\.", name).group(1))


def state_of(step, booster):
    # The trees; the library's other files is not the same before and after a file.
    return witness.digest(b"%d" % step, *(tree.encode() for tree in booster.get_dump(with_stats=True)))


class Pace(xgb.callback.TrainingCallback):
    """Before the callback that saves: what that is going to save is known."""

    def after_iteration(self, model, epoch, evals_log):
        time.sleep(0.14)
        witness.step(model.num_boosted_rounds())
        return False


class CheckPoint(xgb.callback.TrainingCheckPoint):
    def after_iteration(self, model, epoch, evals_log):
        if self._epoch != self._iterations:
            return super().after_iteration(model, epoch, evals_log)
        rounds = model.num_boosted_rounds()
        with witness.saving(rounds, state_of(rounds, model)) as files:
            result = super().after_iteration(model, epoch, evals_log)
            files.append(os.path.join(ROOT, "model_%d.%s" % (epoch + self._start, self.default_format)))
        return result


found = sorted((name for name in os.listdir(ROOT) if name.startswith("model_")), key=rounds_of)
booster = None
if found:
    booster = xgb.Booster(model_file=os.path.join(ROOT, found[-1]))
    rounds = booster.num_boosted_rounds()
    witness.resumed(rounds, state_of(rounds, booster))
else:
    witness.fresh()
inputs = np.random.default_rng(0).normal(size=(500, 8))
xgb.train(
    {"max_depth": 3, "objective": "reg:squarederror", "seed": 0, "nthread": 1},
    xgb.DMatrix(inputs, label=inputs.sum(axis=1)),
    num_boost_round=min(witness.steps_left(), 10_000),
    evals=[(xgb.DMatrix(inputs, label=inputs.sum(axis=1)), "train")],
    xgb_model=booster,
    callbacks=[Pace(), CheckPoint(directory=ROOT, name="model", interval=INTERVAL)],
)
witness.finished()
