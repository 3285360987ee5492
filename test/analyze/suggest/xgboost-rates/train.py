import numpy as np
import xgboost as xgb

rng = np.random.default_rng(0)
x = rng.normal(size=(400, 8))
data = xgb.DMatrix(x, label=x[:, 0] > 0)
rates = xgb.callback.LearningRateScheduler(lambda epoch: 0.3 * 0.99**epoch)
booster = xgb.train({"objective": "binary:logistic"}, data, num_boost_round=500, callbacks=[rates])
booster.save_model("final.ubj")
