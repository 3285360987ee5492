import numpy as np
import xgboost as xgb

rng = np.random.default_rng(0)
x = rng.normal(size=(400, 8))
data = xgb.DMatrix(x, label=x[:, 0] > 0)
params = {"objective": "binary:logistic", "subsample": 0.8, "colsample_bytree": 0.8}
booster = xgb.train(params, data, num_boost_round=500)
booster.save_model("final.ubj")
