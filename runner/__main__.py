"""Entry point of the zipapp. A Python that is too old for the runner can still parse this file and report its version."""

import sys

if sys.version_info < (3, 8):
    sys.stderr.write(
        "crucible-runner needs Python 3.8 or newer, but this is %d.%d (%s). Install a newer Python and start it with that one.\n"
        % (sys.version_info[0], sys.version_info[1], sys.executable)
    )
    sys.exit(2)

if __name__ == "__main__":
    from crucible_runner.cli import main

    sys.exit(main(sys.argv))
