"""best.keras and last.keras, zip archives written in place, at different times."""

import os

import formats
import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
BEST, LAST = os.path.join(ROOT, "best.keras"), os.path.join(ROOT, "last.keras")

start = lab.go_on(formats.read_zip(LAST)) if os.path.exists(LAST) else 0
for step in lab.train(start):
    print("%d/200 - loss: %.4f - val_loss: %.4f" % (step, lab.loss(step), lab.loss(step)), flush=True)
    if step % 7 == 0:
        formats.write_zip_slowly(BEST, lab.state_at(step))
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            formats.write_zip_slowly(LAST, lab.state_at(step))
            files.append(LAST)
