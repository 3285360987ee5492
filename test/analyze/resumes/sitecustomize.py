"""Slows a small training down, so that it can be killed in the middle: each line that it prints stands for some work."""

import builtins
import os
import time

_print, _pause = builtins.print, float(os.environ["SECONDS_PER_LINE"])


def slow_print(*args, **kwargs):
    _print(*args, **kwargs)
    time.sleep(_pause)


builtins.print = slow_print
