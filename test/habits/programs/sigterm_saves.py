"""SIGTERM makes it save and end."""

import os
import pickle
import signal
import sys

import lab

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "checkpoint.pt")
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(True))

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if asked or step % (2 * lab.SAVE_EVERY) == 0:
        with lab.saving(step) as files:
            lab.write_slowly(PATH + ".tmp", pickle.dumps(lab.state_at(step)), seconds=0.4)
            os.replace(PATH + ".tmp", PATH)
            files.append(PATH)
    if asked:
        sys.exit(143)
