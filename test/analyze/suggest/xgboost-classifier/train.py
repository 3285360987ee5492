import argparse
import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier
from xgboost.callback import TrainingCallback


class Log(TrainingCallback):
    def before_iteration(self, model, epoch, evals_log):
        print("round", model.num_boosted_rounds(), flush=True)
        time.sleep(0.05)


def main(args):
    x, y = make_classification(600, 12, n_informative=6, n_classes=3, random_state=0)
    x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=0)
    model = XGBClassifier(n_estimators=args.rounds, max_depth=3, learning_rate=0.1, callbacks=[Log()])
    model.fit(x_train, y_train, eval_set=[(x_test, y_test)], verbose=False)
    np.save("final.npy", model.predict_proba(x_test))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    main(parser.parse_args())
