"""A training that logs to MLflow as its documentation shows."""

import mlflow
from lab import STEPS, first_step, save, wait_to_be_killed

mlflow.set_experiment("loop")
with mlflow.start_run():
    mlflow.log_params({"steps": STEPS, "rate": 0.1})
    with mlflow.start_run(nested=True):
        mlflow.log_metric("inner", 1.0)
    for step in range(first_step(), STEPS + 1):
        mlflow.log_metric("loss", 1 / step, step=step)
        save(step)
        wait_to_be_killed(step)
