import os
import re

import click
import xgboost as xgb

ROUNDS = 1200


def newest(folder):
    files = [f for f in os.listdir(folder) if re.fullmatch(r"rank_\d+\.ubj", f)]
    return max(files, key=lambda f: int(re.findall(r"\d+", f)[0]), default=None)


@click.command()
@click.option("--train", "train_path", default="train.svm")
@click.option("--out", default="boosters")
@click.option("--gpu/--cpu", default=False)
def main(train_path, out, gpu):
    os.makedirs(out, exist_ok=True)
    dtrain = xgb.DMatrix(f"{train_path}?format=libsvm")
    params = {
        "objective": "rank:ndcg",
        "eta": 0.05,
        "max_depth": 7,
        "tree_method": "hist",
        "device": "cuda" if gpu else "cpu",
    }
    last = newest(out)
    booster, rounds = None, ROUNDS
    if last:
        booster = xgb.Booster(model_file=os.path.join(out, last))
        rounds -= booster.num_boosted_rounds()
    booster = xgb.train(
        params,
        dtrain,
        num_boost_round=rounds,
        xgb_model=booster,
        callbacks=[xgb.callback.TrainingCheckPoint(directory=out, name="rank", interval=100)],
    )
    booster.save_model("final.ubj")


if __name__ == "__main__":
    main()
