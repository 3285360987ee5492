"""Makes the reckonings of `npm run proof -- money` once more, by the runner's own program, and prints those that come out otherwise."""

import json
import sys

sys.path.insert(0, sys.argv[1])

from crucible_runner.clock import Clock  # noqa: E402
from crucible_runner.dates import Dates  # noqa: E402
from crucible_runner.control.limits import Limits, Spent  # noqa: E402


def main():
    for line in sys.stdin:
        told = json.loads(line)
        limits = Limits({"seq": 0, "deadlineAtMs": None, "budget": told["budget"]}, Spent(told["spentAtMs"], told["spentMicroUsd"]), Dates(Clock()))
        stop = limits.hard_stop()
        at_ms = None if stop is None else stop.at_ms
        if at_ms != told["stopAtMs"]:
            print("%s: the runner stops at %s" % (line.strip(), at_ms))


if __name__ == "__main__":
    main()
