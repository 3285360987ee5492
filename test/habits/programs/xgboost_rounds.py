"""model_N.json for each few rounds, text written in place."""

import base64
import json
import os

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def rounds_of(name):
    return int(name[len("model_") : -len(".json")])


found = sorted((name for name in os.listdir(ROOT) if name.startswith("model_")), key=rounds_of)
start = 0
if found:
    with open(os.path.join(ROOT, found[-1])) as file:
        learner = json.load(file)["learner"]
    parts = {name: base64.b64decode(learner[name]) for name in ("model", "optimizer")}
    start = lab.go_on(dict(parts, step=rounds_of(found[-1])))
for step in lab.train(start):
    print("[%d]\ttrain-rmse:%.5f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            learner = {name: base64.b64encode(state[name]).decode() for name in ("model", "optimizer")}
            path = os.path.join(ROOT, "model_%d.json" % step)
            text = json.dumps({"learner": learner, "version": [2, 1, 0]}).encode()
            lab.write_slowly(path, text, seconds=0.4)
            files.append(path)
