"""ckpt-N.data and ckpt-N.index, then the file `checkpoint` names them; the three newest stay."""

import glob
import os
import pickle
import re

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
INDEX = os.path.join(ROOT, "checkpoint")


def load():
    with open(INDEX) as file:
        prefix = os.path.join(ROOT, re.search('model_checkpoint_path: "(.*)"', file.read()).group(1))
    with open(prefix + ".index", "rb") as file:
        state = pickle.load(file)
    with open(prefix + ".data-00000-of-00001", "rb") as file:
        state["model"] = file.read()
    return state


start = lab.go_on(load()) if os.path.exists(INDEX) else 0
for step in lab.train(start):
    print("Epoch %d Loss %.4f" % (step // 100, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            prefix = os.path.join(ROOT, "ckpt-%d" % step)
            lab.write_slowly(prefix + ".data-00000-of-00001", state.pop("model"), seconds=0.3)
            lab.pause()
            with open(prefix + ".index", "wb") as file:
                pickle.dump(state, file)
            with open(INDEX + ".tmp", "w") as file:
                file.write('model_checkpoint_path: "ckpt-%d"\n' % step)
            os.replace(INDEX + ".tmp", INDEX)
            files += [prefix + ".data-00000-of-00001", prefix + ".index"]
            numbers = sorted(int(path[:-6].rpartition("-")[2]) for path in glob.glob(os.path.join(ROOT, "ckpt-*.index")))
            for old in numbers[:-3]:
                for path in glob.glob(os.path.join(ROOT, "ckpt-%d.*" % old)):
                    os.remove(path)
