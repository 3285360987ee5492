"""The runner: the program on the machine. docs/reference/runner-protocol.md describes its interface to the rest of Crucible."""

import os

PROGRAM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The runner as it was started: the zipapp, or its folder in a checkout."""
