import time

import numpy as np
import xgboost as xgb


class Slowly(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        print("trees", model.num_boosted_rounds(), flush=True)
        time.sleep(0.05)
        return False


rng = np.random.default_rng(0)
x = rng.normal(size=(500, 8))
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(int)
train = xgb.DMatrix(x[:400], label=y[:400])
valid = xgb.DMatrix(x[400:], label=y[400:])
params = {"objective": "binary:logistic", "max_depth": 4, "eta": 0.2, "eval_metric": "logloss"}
booster = xgb.train(
    params,
    train,
    num_boost_round=60,
    evals=[(valid, "valid")],
    verbose_eval=20,
    callbacks=[Slowly()],
)
booster.save_model("final.ubj")
