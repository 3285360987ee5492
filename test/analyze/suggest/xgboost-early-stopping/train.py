import numpy as np
import xgboost as xgb

rng = np.random.default_rng(0)
x = rng.normal(size=(400, 8))
data = xgb.DMatrix(x, label=x[:, 0] > 0)
booster = xgb.train(
    {"objective": "binary:logistic"},
    data,
    num_boost_round=500,
    evals=[(data, "train")],
    early_stopping_rounds=10,
)
booster.save_model("final.ubj")
