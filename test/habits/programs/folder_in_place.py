"""One folder `checkpoint`, removed and filled anew at each save."""

import os
import pickle
import shutil

import lab

FOLDER = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "checkpoint")


def load():
    state = {}
    for name in ("model", "optimizer", "step"):
        with open(os.path.join(FOLDER, name + ".pkl"), "rb") as file:
            state[name] = pickle.load(file)
    return state


start = lab.go_on(load()) if os.path.isdir(FOLDER) else 0
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            shutil.rmtree(FOLDER, ignore_errors=True)
            os.makedirs(FOLDER)
            for name, part in lab.state_at(step).items():
                with open(os.path.join(FOLDER, name + ".pkl"), "wb") as file:
                    pickle.dump(part, file)
                files.append(os.path.join(FOLDER, name + ".pkl"))
                lab.pause(0.8)
