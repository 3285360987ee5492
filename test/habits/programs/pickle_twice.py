"""Two objects pickled into one file, which is held open for the time between them."""

import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
PATH = os.path.join(ROOT, "state.pkl")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        model, rest = pickle.load(file), pickle.load(file)
    start = lab.go_on(dict(rest, model=model))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            with open(PATH, "wb") as file:
                pickle.dump(state.pop("model"), file)
                file.flush()
                lab.pause(1.5)
                pickle.dump(state, file)
            files.append(PATH)
