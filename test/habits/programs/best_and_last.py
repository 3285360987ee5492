"""best.pt every third save and last.pt at each, as torch.save writes them; training continues from last.pt."""

import os

import formats
import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
BEST, LAST = os.path.join(ROOT, "best.pt"), os.path.join(ROOT, "last.pt")

start = lab.go_on(formats.read_zip(LAST)) if os.path.exists(LAST) else 0
for step in lab.train(start):
    print("epoch %d batch %d loss %.4f" % (step // 50, step % 50, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            formats.write_zip_slowly(LAST, lab.state_at(step))
            files.append(LAST)
        if step % (3 * lab.SAVE_EVERY) == 0:
            formats.write_zip_slowly(BEST, lab.state_at(step))
