"""One file, overwritten in place, slowly."""

import os
import pickle

import lab

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "model.pkl")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d, loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            lab.write_slowly(PATH, pickle.dumps(lab.state_at(step)))
            files.append(PATH)
