"""The handler of SIGTERM itself saves, in place, and ends the program."""

import os
import pickle
import signal
import sys

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
now = 0


def save(step):
    with lab.saving(step) as files:
        path = os.path.join(ROOT, "step_%d.pkl" % step)
        lab.write_slowly(path, pickle.dumps(lab.state_at(step)))
        files.append(path)


def on_term(*_):
    print("saving before the end", flush=True)
    save(now)
    sys.exit(0)


found = sorted((name for name in os.listdir(ROOT) if name.endswith(".pkl")), key=lambda name: int(name[5:-4]))
start = 0
if found:
    with open(os.path.join(ROOT, found[-1]), "rb") as file:
        start = now = lab.go_on(pickle.load(file))
signal.signal(signal.SIGTERM, on_term)
for step in lab.train(start):
    now = step
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if step % (2 * lab.SAVE_EVERY) == 0:
        save(step)
