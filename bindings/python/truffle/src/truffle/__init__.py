"""Finds capacity of EC2 for ML, and checks it before a costly run."""
