"""Three runs, one after the other. The third one is killed and repeated."""

import wandb
from lab import STEPS, save, wait_to_be_killed

for fold in range(3):
    with wandb.init(project="folds", name="fold-%d" % fold) as run:
        run.log({"loss": 1.0})
        print("the run is", run.id, flush=True)
        if fold == 2:
            save(STEPS - 1)
            wait_to_be_killed(STEPS)
