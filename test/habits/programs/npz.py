"""One .npz, written in place array by array."""

import os

import formats
import lab

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "params.npz")

start = lab.go_on(formats.read_npz(PATH)) if os.path.exists(PATH) else 0
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            formats.write_npz_slowly(PATH, lab.state_at(step))
            files.append(PATH)
