"""Makes parts small enough that every file of a test has several, before any module of the runner has read their size."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner", "python"))
import support  # noqa: E402,F401  (finds the runner)
from crucible_runner import documents  # noqa: E402

PART_BYTES = 64
documents.PART_BYTES = PART_BYTES
