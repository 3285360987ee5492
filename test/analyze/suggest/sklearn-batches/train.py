import time

import numpy as np
from sklearn.linear_model import SGDClassifier

rng = np.random.default_rng(2)
x = rng.normal(size=(500, 8))
y = (x[:, 0] + x[:, 1] > 0).astype(int)
model = SGDClassifier(random_state=1, learning_rate="adaptive", eta0=0.1)
scores = []
for epoch in range(24):
    order = rng.permutation(len(x))
    for rows in np.array_split(order, 5):
        model.partial_fit(x[rows], y[rows], classes=[0, 1])
    scores.append(model.score(x, y))
    print("epoch", epoch, "accuracy", scores[-1], flush=True)
    time.sleep(0.1)
np.savez("final.npz", coef=model.coef_, intercept=model.intercept_, scores=scores)
