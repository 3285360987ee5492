"""One file, written in two goes and closed in between."""

import os
import pickle

import lab

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "checkpoint.pkl")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        data = pickle.dumps(lab.state_at(step))
        with lab.saving(step) as files:
            with open(PATH, "wb") as file:
                file.write(data[:50_000])
            lab.pause()
            with open(PATH, "ab") as file:
                file.write(data[50_000:])
            files.append(PATH)
