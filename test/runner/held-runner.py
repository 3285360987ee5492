"""The runner, whose one part holds the lock of Python for CRUCIBLE_TEST_HOLD_SECONDS at its first call, as a pathological regular expression does.

CRUCIBLE_TEST_HELD names the part. The file `held` in the machine's folder appears when the part is held. Without CRUCIBLE_TEST_HOLD_SECONDS the
part fails instead.
"""

import ctypes
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "runner"))
sys.dont_write_bytecode = True

# The same part may be called by several threads.
_held = []


def hold(owner, name):
    original = getattr(owner, name)

    def held(*arguments, **named):
        if not _held:
            _held.append(True)
            root = sys.argv[sys.argv.index("--root") + 1]
            open(os.path.join(root, "held"), "w").close()
            seconds = os.environ.get("CRUCIBLE_TEST_HOLD_SECONDS")
            if seconds is None:
                raise RuntimeError("out of order")
            # A call through PyDLL does not release the lock.
            ctypes.PyDLL(None).sleep(int(seconds))
        return original(*arguments, **named)

    setattr(owner, name, held)


def main():
    from crucible_runner import cli, stages
    from crucible_runner.checkpoint.scanner import Scanner
    from crucible_runner.checkpoint.sending import Sender
    from crucible_runner.logs.lines import LineSplitter
    from crucible_runner.progress import Progress

    parts = {
        "logs": (LineSplitter, "feed"),
        "progress": (Progress, "see"),
        "scan": (Scanner, "scan"),
        "upload": (Sender, "_upload"),
        "artifacts": (stages, "find_artifacts"),
    }
    if os.environ["CRUCIBLE_TEST_HELD"] in parts:
        hold(*parts[os.environ["CRUCIBLE_TEST_HELD"]])
    return cli.main(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
