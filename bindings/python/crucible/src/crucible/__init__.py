"""Runs ML jobs to completion on whatever capacity is cheapest, soonest or safest."""
