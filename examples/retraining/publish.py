"""Publishes the model in ./checkpoints: here, as the artifact model.json with a note of what it replaces."""

import argparse
import glob
import json
import os

arguments = argparse.ArgumentParser()
arguments.add_argument("--model", required=True)
arguments.add_argument("--replaces", default="")
given = arguments.parse_args()
with open(sorted(glob.glob("checkpoints/step-*.json"))[-1], encoding="utf-8") as file:
    published = {"model": given.model, "replaces": given.replaces, "weights": json.load(file)["rows"]}
folder = os.environ.get("CRUCIBLE_OUTPUT_DIR", "output")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "model.json"), "w", encoding="utf-8") as file:
    json.dump(published, file)
print("published %s" % given.model)
