"""An event file of TensorBoard is held open and grows next to the checkpoints."""

import os
import pickle
import struct
import time

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
events = open(os.path.join(ROOT, "events.out.tfevents.%d.host.%d" % (time.time(), os.getpid())), "ab")


def log(step):
    record = struct.pack("<qf", step, lab.loss(step))
    events.write(struct.pack("<Q", len(record)) + b"crc0" + record + b"crc1")
    events.flush()


found = sorted(name for name in os.listdir(ROOT) if name.startswith("ckpt_"))
start = 0
if found:
    with open(os.path.join(ROOT, found[-1]), "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    log(step)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            path = os.path.join(ROOT, "ckpt_%06d.pt" % step)
            lab.write_slowly(path, pickle.dumps(lab.state_at(step)), seconds=0.3)
            files.append(path)
