import os
import pickle
import time

import numpy as np
from sklearn.linear_model import SGDClassifier

rng = np.random.RandomState(6)
x = rng.normal(size=(600, 5))
y = (x[:, 0] > x[:, 1]).astype(int)
model = SGDClassifier(random_state=6)
scores = []
os.makedirs("models", exist_ok=True)
for epoch in range(18):
    order = rng.permutation(len(x))
    for rows in np.array_split(order, 6):
        model.partial_fit(x[rows], y[rows], classes=[0, 1])
    scores.append(model.score(x, y))
    print("epoch", epoch, scores[-1], flush=True)
    time.sleep(0.1)
    with open(f"models/epoch{epoch:03d}.pkl", "wb") as file:
        pickle.dump({"weights": model.coef_, "epoch": epoch}, file)
np.savez("final.npz", weights=model.coef_, scores=scores)
