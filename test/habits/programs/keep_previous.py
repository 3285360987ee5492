"""last.pt becomes previous.pt before the new one is written; a start takes the one that can be read."""

import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
LAST, PREVIOUS = os.path.join(ROOT, "last.pt"), os.path.join(ROOT, "previous.pt")

start = 0
for path in (LAST, PREVIOUS):
    try:
        with open(path, "rb") as file:
            start = lab.go_on(pickle.load(file))
        break
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        print("%s: %s" % (path, error), flush=True)
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            if os.path.exists(LAST):
                os.replace(LAST, PREVIOUS)
            lab.write_slowly(LAST, pickle.dumps(lab.state_at(step)))
            files.append(LAST)
