import numpy as np
import xgboost as xgb

rng = np.random.default_rng(0)
x = rng.normal(size=(400, 8))
data = xgb.DMatrix(x, label=x[:, 0] > 0)
booster = xgb.train({"booster": "dart", "rate_drop": 0.1, "objective": "binary:logistic"}, data, 500)
booster.save_model("final.ubj")
