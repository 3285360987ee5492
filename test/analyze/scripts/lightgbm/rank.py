import lightgbm as lgb
import numpy as np

x = np.load("x.npy")
y = np.load("y.npy")
group = np.load("group.npy")
train = lgb.Dataset(x, label=y, group=group)
gbm = lgb.train({"objective": "lambdarank", "learning_rate": 0.05}, train, num_boost_round=800)
gbm.save_model("rank.txt")
