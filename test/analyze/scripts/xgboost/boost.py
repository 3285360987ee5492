import xgboost as xgb
from sklearn.datasets import fetch_california_housing
from sklearn.model_selection import train_test_split

X, y = fetch_california_housing(return_X_y=True)
xtr, xte, ytr, yte = train_test_split(X, y, random_state=0)
d = xgb.DMatrix(xtr, label=ytr)
booster = xgb.train({"max_depth": 6, "eta": 0.1, "tree_method": "hist"}, d, num_boost_round=500)
booster.save_model("housing.json")
