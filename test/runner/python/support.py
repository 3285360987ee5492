"""What the tests of the runner's parts share."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.path.join(HERE, "..", "..", "..", "runner")
GOLDEN = os.path.join(HERE, "..", "golden")
sys.path.insert(0, RUNNER)
sys.dont_write_bytecode = True


def _patience():
    """The factor of test/support/patience.ts, which says what it means."""
    setting = os.environ.get("CRUCIBLE_TEST_PATIENCE")
    if setting:
        return float(setting)
    try:
        return min(4.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
    except OSError:
        return 1.0


_PATIENCE = _patience()


def patient(seconds):
    """The longest that something may take here that takes at most this long on an idle machine."""
    return seconds * _PATIENCE


class FakeClock:
    """Clocks that stand still until a test moves them."""

    def __init__(self, mono_ms=1_000_000, wall_ms=1_800_000_000_000):
        self._mono_ms = mono_ms
        self._wall_ms = wall_ms

    def mono_ms(self):
        return self._mono_ms

    def wall_ms(self):
        return self._wall_ms

    def advance(self, ms):
        self._mono_ms += ms
        self._wall_ms += ms

    def set_wall(self, ms):
        self._wall_ms = ms


class FolderTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="crucible-unit-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def at(self, *names):
        return os.path.join(self.folder, *names)

    @contextlib.contextmanager
    def in_deep_folder(self, name, depth):
        """Changes to a new folder, which is this many folders named 0 below `name`, and back at the end."""
        self.addCleanup(subprocess.call, ["rm", "-rf", self.at(name)])
        here = os.getcwd()
        try:
            os.makedirs(self.at(name), exist_ok=True)
            os.chdir(self.at(name))
            for _ in range(depth):
                os.mkdir("0")
                os.chdir("0")
            yield
        finally:
            os.chdir(here)

    def write(self, name, text, mode="w"):
        path = self.at(*name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode) as file:
            file.write(text)
        return path

    def read(self, name):
        with open(self.at(*name.split("/"))) as file:
            return file.read()


def paid_for(duration_ms):
    """Money for so much time at the dearest price: a micro-dollar for each second."""
    return {"microUsd": duration_ms // 1000, "priceMaxMicroUsdPerHour": 3600}
