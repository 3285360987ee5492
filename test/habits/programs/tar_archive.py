"""checkpoint-N.tar.gz, made in place."""

import glob
import io
import os
import tarfile

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def load(path):
    with tarfile.open(path) as archive:
        state = {name: archive.extractfile(name).read() for name in ("model", "optimizer", "step")}
    return dict(state, step=int(state["step"]))


def number_of(path):
    return int(path[: -len(".tar.gz")].rpartition("-")[2])


found = sorted(glob.glob(os.path.join(ROOT, "checkpoint-*.tar.gz")), key=number_of)
start = lab.go_on(load(found[-1])) if found else 0
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            path = os.path.join(ROOT, "checkpoint-%d.tar.gz" % step)
            state = lab.state_at(step)
            with tarfile.open(path, "w:gz") as archive:
                for name, data in (("model", state["model"]), ("optimizer", state["optimizer"]), ("step", b"%d" % step)):
                    entry = tarfile.TarInfo(name)
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
                    lab.pause(0.8)
            files.append(path)
