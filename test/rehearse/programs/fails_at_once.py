"""Ends with an error before its first step."""

import training

state = training.fresh()
print("loading %s" % state["no such key"])
