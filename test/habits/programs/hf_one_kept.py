"""checkpoint-N/ without pauses; only the newest stays (save_total_limit=1), the rest is removed after the save."""

import glob
import json
import os
import shutil

import lab

OUTPUT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def number_of(path):
    return int(path.rpartition("-")[2])


def load(folder):
    state = {}
    for name in ("model", "optimizer"):
        with open(os.path.join(folder, name + ".bin"), "rb") as file:
            state[name] = file.read()
    with open(os.path.join(folder, "trainer_state.json")) as file:
        state["step"] = json.load(file)["global_step"]
    return state


found = sorted(glob.glob(os.path.join(OUTPUT, "checkpoint-*")), key=number_of)
start = lab.go_on(load(found[-1])) if found else 0
for step in lab.train(start):
    print({"loss": lab.loss(step), "learning_rate": 5e-5, "epoch": step / 50}, flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            folder = os.path.join(OUTPUT, "checkpoint-%d" % step)
            os.makedirs(folder, exist_ok=True)
            for name in ("model", "optimizer"):
                lab.write_slowly(os.path.join(folder, name + ".bin"), state[name], seconds=0.2)
            with open(os.path.join(folder, "trainer_state.json"), "w") as file:
                json.dump({"global_step": step}, file)
            for old in glob.glob(os.path.join(OUTPUT, "checkpoint-*")):
                if old != folder:
                    shutil.rmtree(old)
            files += [os.path.join(folder, name) for name in os.listdir(folder)]
