"""A forked process saves, and the training does not wait for it."""

import multiprocessing
import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def save(step):
    with lab.saving(step) as files:
        path = os.path.join(ROOT, "iter_%07d.pt" % step)
        lab.write_slowly(path, pickle.dumps(lab.state_at(step)))
        files.append(path)


found = sorted(name for name in os.listdir(ROOT) if name.startswith("iter_"))
start = 0
if found:
    with open(os.path.join(ROOT, found[-1]), "rb") as file:
        start = lab.go_on(pickle.load(file))
context = multiprocessing.get_context("fork")
for step in lab.train(start):
    print("iteration %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        context.Process(target=save, args=(step,)).start()
