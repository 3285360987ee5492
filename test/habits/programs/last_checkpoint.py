"""model_0000012.pth, then the file last_checkpoint names it."""

import os
import pickle

import lab

OUTPUT = "output"
POINTER = os.path.join(OUTPUT, "last_checkpoint")
os.makedirs(OUTPUT, exist_ok=True)

start = 0
if os.path.exists(POINTER):
    with open(POINTER) as file:
        name = file.read().strip()
    with open(os.path.join(OUTPUT, name), "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    print("eta: 0:10:00  iter: %d  total_loss: %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            name = "model_%07d.pth" % step
            with open(os.path.join(OUTPUT, name), "wb") as file:
                pickle.dump(lab.state_at(step), file)
            lab.pause()
            with open(POINTER, "w") as file:
                file.write(name)
            files.append(os.path.join(OUTPUT, name))
