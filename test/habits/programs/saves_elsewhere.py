"""It saves into runs/exp1 of its own folder, where it is not looked for."""

import os
import pickle

import lab

PATH = os.path.join("runs", "exp1", "last.pt")
os.makedirs(os.path.dirname(PATH), exist_ok=True)

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            with open(PATH, "wb") as file:
                pickle.dump(lab.state_at(step), file)
            files.append(PATH)
