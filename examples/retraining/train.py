"""Trains the model on the phrases of a time: python3 train.py --from 2026-07-01 --to 2026-10-01

Checkpoints go to ./checkpoints; a restarted training resumes from the newest one.
"""

import argparse
import json
import os

from model import Model
from phrases import between, split

_SAVE_EVERY = 10


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--from", dest="first", required=True)
    arguments.add_argument("--to", dest="end", required=True)
    arguments.add_argument("--steps", type=int, default=60)
    given = arguments.parse_args()
    training, held_out = split(between(given.first, given.end))
    step, model = newest()
    while step < given.steps:
        model.learn(training)
        step += 1
        if step % _SAVE_EVERY == 0:
            save(step, model)
            print("step %d/%d loss %.4f" % (step, given.steps, model.loss(held_out)), flush=True)


def newest():
    os.makedirs("checkpoints", exist_ok=True)
    names = sorted(name for name in os.listdir("checkpoints") if name.endswith(".json"))
    if not names:
        return 0, Model()
    return int(names[-1][5:11]), Model.load(os.path.join("checkpoints", names[-1]))


def save(step, model):
    """The rename makes the file appear complete."""
    path = os.path.join("checkpoints", "step-%06d.json" % step)
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump({"step": step, "rows": model.rows}, file)
    os.replace(path + ".tmp", path)


if __name__ == "__main__":
    main()
