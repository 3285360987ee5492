"""checkpoint-N/ in turn; the first one is the best and stays, and the state names it by its absolute path in a pickle."""

import glob
import json
import os
import pickle
import shutil
import time

import training

training.STEPS = 90


def number(folder):
    return int(folder.rsplit("-", 1)[1])


def folders():
    return sorted(glob.glob(os.path.join(training.DIRECTORY, "checkpoint-*")), key=number)


state, best = training.fresh(), None
if folders():
    with open(os.path.join(folders()[-1], "state.pkl"), "rb") as file:
        state, best = pickle.load(file)
    if os.environ.get("LOSES_BEST"):
        shutil.rmtree(best, ignore_errors=True)
for step in training.steps(state):
    folder = os.path.join(training.DIRECTORY, "checkpoint-%d" % step)
    best = best or os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "state.pkl"), "wb") as file:
        pickle.dump((state, best), file)
    time.sleep(0.3)
    with open(os.path.join(folder, "trainer_state.json"), "w") as file:
        json.dump({"global_step": step, "best_model_checkpoint": best}, file)
    for other in folders():
        if other not in (folder, best):
            shutil.rmtree(other)
