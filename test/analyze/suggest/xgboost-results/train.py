import json

import numpy as np
from xgboost import XGBRegressor

rng = np.random.default_rng(0)
x = rng.normal(size=(300, 5))
model = XGBRegressor(n_estimators=300, max_depth=5)
model.fit(x, x.sum(1), eval_set=[(x, x.sum(1))], verbose=False)
with open("results.json", "w") as file:
    json.dump(model.evals_result(), file)
model.save_model("final.ubj")
