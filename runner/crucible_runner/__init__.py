"""The runner: the program on the machine. docs/reference/runner-protocol.md describes its interface to the rest of Crucible."""

import os

PROGRAM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The path of the started runner: the zipapp, or its folder in a checkout."""
