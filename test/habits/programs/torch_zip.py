"""checkpoint_N.pt as torch.save writes it, slowly and straight into its place; all stay."""

import glob
import os

import formats
import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]

found = sorted(glob.glob(os.path.join(ROOT, "checkpoint_*.pt")))
start = lab.go_on(formats.read_zip(found[-1])) if found else 0
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            path = os.path.join(ROOT, "checkpoint_%05d.pt" % step)
            formats.write_zip_slowly(path, lab.state_at(step))
            files.append(path)
