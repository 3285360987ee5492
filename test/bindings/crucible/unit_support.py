"""Parts of the tests of the Python package `crucible`."""

import linecache
import os
import stat
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


class InFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, text):
        """The path of a command line that is this shell script."""
        path = self.folder / "crucible"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)


class InNotebook(InFolder):
    """A test with a notebook: its cells define names in the module ``__main__``, and their source is known as IPython keeps it."""

    def setUp(self):
        super().setUp()
        self._main = sys.modules["__main__"]
        self.notebook = types.ModuleType("__main__")
        sys.modules["__main__"] = self.notebook
        self.addCleanup(sys.modules.__setitem__, "__main__", self._main)
        self._cells = 0

    def cell(self, source, **names):
        """Runs a cell and returns its names."""
        self._cells += 1
        name = "/tmp/ipykernel_1/%d.py" % self._cells
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        self.addCleanup(linecache.cache.pop, name, None)
        vars(self.notebook).update(names)
        exec(compile(source, name, "exec"), vars(self.notebook))
        return vars(self.notebook)

    def run_packed(self, folder, command="python3 -B function_main.py"):
        """Runs a packed function as the machine does; returns the file with its result, and what it printed."""
        output = self.folder / "output"
        output.mkdir(exist_ok=True)
        env = {"PATH": os.environ["PATH"], "CRUCIBLE_OUTPUT_DIR": str(output)}
        done = subprocess.run(["sh", "-c", command], cwd=str(folder), env=env, capture_output=True, text=True)
        path = output / "crucible-function-result" / "value"
        return (path.read_bytes() if path.exists() else None), done.stdout + done.stderr
