"""A training with a parameter that differs in each attempt: MLflow refuses to change a parameter of a run."""

import os

import mlflow
from lab import STEPS, first_step, save, wait_to_be_killed

with mlflow.start_run():
    mlflow.log_param("attempt", os.environ["CRUCIBLE_ATTEMPT"])
    for step in range(first_step(), STEPS + 1):
        mlflow.log_metric("loss", 1 / step, step=step)
        save(step)
        wait_to_be_killed(step)
