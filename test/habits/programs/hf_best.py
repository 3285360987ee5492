"""The Trainer's layout with its best checkpoint kept: `best_model_checkpoint` and a link `latest` are absolute paths."""

import json
import os
import pickle
import re
import shutil

import lab

OUTPUT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
LATEST = os.path.join(OUTPUT, "latest")


def checkpoints():
    names = [name for name in os.listdir(OUTPUT) if re.fullmatch(r"checkpoint-\d+", name)]
    return [os.path.join(OUTPUT, name) for name in sorted(names, key=lambda name: int(name.split("-")[1]))]


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def load(folder):
    state = json.loads(read(folder, "trainer_state.json"))
    best = state["best_model_checkpoint"]
    assert read(best, "model.bin") == lab.state_at(state["best_step"])["model"], "the best checkpoint is another one"
    assert set(checkpoints()) == {best, folder}, "there is %s" % checkpoints()
    assert os.path.samefile(LATEST, folder), "latest leads to %s" % os.readlink(LATEST)
    return {"step": state["global_step"], "model": read(folder, "model.bin"), "optimizer": pickle.loads(read(folder, "optimizer.pt"))}, best


def save(step, best, files):
    state = lab.state_at(step)
    folder = os.path.join(OUTPUT, "checkpoint-%d" % step)
    os.makedirs(folder, exist_ok=True)
    best_step = int(best.split("-")[-1])
    told = {"global_step": step, "best_model_checkpoint": best, "best_step": best_step}
    parts = {"model.bin": state["model"], "optimizer.pt": pickle.dumps(state["optimizer"])}
    parts["trainer_state.json"] = json.dumps(told).encode()
    for name, body in parts.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(body)
    if os.path.lexists(LATEST):
        os.unlink(LATEST)
    os.symlink(folder, LATEST)
    for other in checkpoints():
        if other not in (best, folder):
            shutil.rmtree(other)
    files += [os.path.join(folder, name) for name in parts]


found = checkpoints()
best = None
start = 0
if found:
    state, best = load(found[-1])
    start = lab.go_on(state)
else:
    assert not os.path.lexists(LATEST)
for step in lab.train(start):
    print({"loss": round(lab.loss(step), 4), "epoch": step / 100}, flush=True)
    if lab.is_save_due(step):
        best = best or os.path.join(OUTPUT, "checkpoint-%d" % step)
        with lab.saving(step) as files:
            save(step, best, files)
