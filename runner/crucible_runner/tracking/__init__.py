"""Runs of experiment trackers (MLflow, Weights & Biases): which the job has, and how its next attempt continues the same one."""

from .tracking import Place, Tracking

__all__ = ["Place", "Tracking"]
