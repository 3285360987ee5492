"""checkpoint-N/ with model, optimizer and trainer_state.json in turn, a pause between them; the two newest stay."""

import glob
import json
import os
import pickle
import re
import shutil

import lab

OUTPUT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def number_of(path):
    return int(re.search(r"checkpoint-(\d+)$", path).group(1))


def last_checkpoint():
    found = [path for path in glob.glob(os.path.join(OUTPUT, "checkpoint-*")) if os.path.isdir(path)]
    return max(found, key=number_of, default=None)


def load(folder):
    with open(os.path.join(folder, "trainer_state.json")) as file:
        step = json.load(file)["global_step"]
    with open(os.path.join(folder, "model.bin"), "rb") as file:
        model = file.read()
    with open(os.path.join(folder, "optimizer.pt"), "rb") as file:
        optimizer = pickle.load(file)
    return {"step": step, "model": model, "optimizer": optimizer}


def save(step, files):
    state = lab.state_at(step)
    folder = os.path.join(OUTPUT, "checkpoint-%d" % step)
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, name) for name in ("model.bin", "optimizer.pt", "trainer_state.json")]
    with open(paths[0], "wb") as file:
        file.write(state["model"])
    lab.pause()
    with open(paths[1], "wb") as file:
        pickle.dump(state["optimizer"], file)
    lab.pause()
    with open(paths[2], "w") as file:
        json.dump({"global_step": step, "log_history": [{"loss": lab.loss(step)}]}, file)
    for old in sorted(glob.glob(os.path.join(OUTPUT, "checkpoint-*")), key=number_of)[:-2]:
        shutil.rmtree(old)
    files += paths


checkpoint = last_checkpoint()
start = lab.go_on(load(checkpoint)) if checkpoint else 0
for step in lab.train(start):
    print({"loss": round(lab.loss(step), 4), "epoch": step / 100}, flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            save(step, files)
