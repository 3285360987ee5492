import argparse

import joblib
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, train_test_split

ap = argparse.ArgumentParser()
ap.add_argument("csv", nargs="?", default="churn.csv")
ap.add_argument("--trees", type=int, default=300)
a = ap.parse_args()
df = pd.read_csv(a.csv)
x, xt, y, yt = train_test_split(df.drop(columns="churn"), df["churn"])
search = GridSearchCV(RandomForestClassifier(n_estimators=a.trees), {"max_depth": [4, 8, None]}, n_jobs=-1)
search.fit(x, y)
print(search.score(xt, yt))
joblib.dump(search.best_estimator_, "forest.joblib")
