"""lightning_logs/version_N/checkpoints/, each start a version of its own that begins with hparams.yaml."""

import glob
import os
import pickle

import lab

ROOT = "lightning_logs"

found = glob.glob(os.path.join(ROOT, "version_*", "checkpoints", "*.ckpt"))
newest = max(found, key=lambda path: int(path.rpartition("step=")[2][: -len(".ckpt")]), default=None)
versions = [int(path.rpartition("_")[2]) for path in glob.glob(os.path.join(ROOT, "version_*"))]
folder = os.path.join(ROOT, "version_%d" % (max(versions, default=-1) + 1))
os.makedirs(os.path.join(folder, "checkpoints"))
with open(os.path.join(folder, "hparams.yaml"), "w") as file:
    file.write("lr: 0.001\nbatch_size: 32\n")
start = 0
if newest:
    with open(newest, "rb") as file:
        start = lab.go_on(pickle.load(file))
before = None
for step in lab.train(start):
    with open(os.path.join(folder, "metrics.csv"), "a") as file:
        file.write("%d,%d,%f\n" % (step // 100, step, lab.loss(step)))
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            path = os.path.join(folder, "checkpoints", "epoch=%d-step=%d.ckpt" % (step // 100, step))
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)), seconds=0.2)
            if before:
                os.remove(before)
            before = path
            files.append(path)
