"""2026-11-22T10-00-00.pt: names that are dates; the last in order is taken, the three newest stay."""

import datetime
import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]

found = sorted(name for name in os.listdir(ROOT) if name.endswith(".pt"))
start = 0
if found:
    with open(os.path.join(ROOT, found[-1]), "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            name = datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S") + ".pt"
            with open(os.path.join(ROOT, name), "wb") as file:
                pickle.dump(lab.state_at(step), file)
            files.append(os.path.join(ROOT, name))
            for old in sorted(other for other in os.listdir(ROOT) if other.endswith(".pt"))[:-3]:
                os.remove(os.path.join(ROOT, old))
