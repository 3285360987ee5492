"""model.bin and then state.json, both overwritten in place, with a pause between them."""

import base64
import json
import os

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
MODEL, STATE = os.path.join(ROOT, "model.bin"), os.path.join(ROOT, "state.json")

start = 0
if os.path.exists(STATE):
    with open(STATE) as file:
        state = json.load(file)
    with open(MODEL, "rb") as file:
        model = file.read()
    start = lab.go_on(dict(state, model=model, optimizer=base64.b64decode(state["optimizer"])))
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            with open(MODEL, "wb") as file:
                file.write(state["model"])
            lab.pause()
            with open(STATE, "w") as file:
                json.dump({"step": step, "optimizer": base64.b64encode(state["optimizer"]).decode()}, file)
            files += [MODEL, STATE]
