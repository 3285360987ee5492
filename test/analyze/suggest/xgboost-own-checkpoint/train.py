import os
import time

import numpy as np
import xgboost as xgb


class Slowly(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        print("trees", model.num_boosted_rounds(), flush=True)
        time.sleep(0.05)


rng = np.random.default_rng(3)
x = rng.normal(size=(300, 6))
data = xgb.QuantileDMatrix(x, label=np.abs(x).sum(1))
os.makedirs("models", exist_ok=True)
booster = xgb.train(
    {"max_depth": 3, "eta": 0.1},
    data,
    50,
    callbacks=[xgb.callback.TrainingCheckPoint("models", interval=4), Slowly()],
)
booster.save_model("final.ubj")
