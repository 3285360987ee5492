"""Finds the runs that a job has in experiment trackers (MLflow, Weights & Biases), and lets its next attempt continue them."""

from .tracking import Place, Tracking

__all__ = ["Place", "Tracking"]
