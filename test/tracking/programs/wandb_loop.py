"""A training that logs to Weights & Biases as its documentation shows."""

import wandb
from lab import STEPS, first_step, save, wait_to_be_killed

with wandb.init(project="loop", config={"steps": STEPS}) as run:
    for step in range(first_step(), STEPS + 1):
        run.log({"loss": 1 / step}, step=step)
        save(step)
        wait_to_be_killed(step)
    print("the run is", run.id, flush=True)
