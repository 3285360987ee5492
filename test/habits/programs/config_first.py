"""config.json first; a folder that is not empty and has no checkpoint is refused."""

import glob
import json
import os
import pickle
import sys

import lab

OUTPUT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]

found = sorted(glob.glob(os.path.join(OUTPUT, "model-*.pkl")), key=lambda path: int(path.split("-")[-1][:-4]))
if not found and os.listdir(OUTPUT):
    sys.exit("Output directory %s is not empty. Use --overwrite_output_dir to train at your own risk." % OUTPUT)
with open(os.path.join(OUTPUT, "config.json"), "w") as file:
    json.dump({"hidden_size": 64, "layers": 2}, file)
start = 0
if found:
    with open(found[-1], "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step=%d loss=%.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step) and step > lab.SAVE_EVERY:
        with lab.saving(step) as files:
            path = os.path.join(OUTPUT, "model-%d.pkl" % step)
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)), seconds=0.3)
            files.append(path)
