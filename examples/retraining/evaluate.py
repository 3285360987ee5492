"""Evaluates the model in ./checkpoints on phrases that it was not trained on, and prints the result as JSON."""

import argparse
import glob
import json

from model import Model
from phrases import between, split

arguments = argparse.ArgumentParser()
arguments.add_argument("--from", dest="first", required=True)
arguments.add_argument("--to", dest="end", required=True)
given = arguments.parse_args()
_, held_out = split(between(given.first, given.end))
newest = sorted(glob.glob("checkpoints/step-*.json"))[-1]
print(json.dumps({"loss": round(Model.load(newest).loss(held_out), 5), "phrases": len(held_out)}))
