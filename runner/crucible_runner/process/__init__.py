"""Processes of the workload: starting, watching and ending them."""
