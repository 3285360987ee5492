import argparse
import os

import joblib
import pandas as pd
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier

ap = argparse.ArgumentParser(description="Click model, learnt in chunks")
ap.add_argument("csv")
ap.add_argument("--chunk", type=int, default=50_000)
ap.add_argument("--passes", type=int, default=3)
ap.add_argument("--state", default="state.joblib")
opt = ap.parse_args()

hasher = FeatureHasher(n_features=2**20, input_type="string")

if os.path.exists(opt.state):
    state = joblib.load(opt.state)
else:
    state = {"clf": SGDClassifier(loss="log_loss", alpha=1e-6), "pass": 0, "chunk": 0}
clf = state["clf"]

for p in range(state["pass"], opt.passes):
    for i, df in enumerate(pd.read_csv(opt.csv, chunksize=opt.chunk)):
        if p == state["pass"] and i < state["chunk"]:
            continue
        y = df.pop("click")
        X = hasher.transform([f"{c}={v}" for c, v in row.items()] for row in df.to_dict("records"))
        clf.partial_fit(X, y, classes=[0, 1])
        if i % 20 == 19:
            joblib.dump({"clf": clf, "pass": p, "chunk": i + 1}, opt.state + ".tmp")
            os.replace(opt.state + ".tmp", opt.state)

joblib.dump(clf, "model.joblib")
