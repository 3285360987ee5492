"""A thread saves a copy of the state while the training continues."""

import os
import pickle
import threading

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
PATH = os.path.join(ROOT, "model.pt")


def save(step, data):
    with lab.saving(step) as files:
        lab.write_slowly(PATH, data)
        files.append(PATH)


start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
saver = None
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        if saver:
            saver.join()
        saver = threading.Thread(target=save, args=(step, pickle.dumps(lab.state_at(step))))
        saver.start()
