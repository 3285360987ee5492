"""A training whose experiment has another name in each attempt: MLflow refuses to continue a run of another experiment."""

import os

import mlflow
from lab import STEPS, first_step, save, wait_to_be_killed

mlflow.set_experiment("dated-%s" % os.environ["CRUCIBLE_ATTEMPT"])
with mlflow.start_run():
    for step in range(first_step(), STEPS + 1):
        mlflow.log_metric("loss", 1 / step, step=step)
        save(step)
        wait_to_be_killed(step)
