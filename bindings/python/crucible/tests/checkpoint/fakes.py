"""A folder in the place of a job's directories, and modules in the place of the libraries."""

import importlib
import importlib.machinery
import json
import os
import shutil
import sys
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.abspath(os.path.join(HERE, "..", "..", "src"))
# The helpers are a part of the package `crucible`, which needs `truffle`.
sys.path[:0] = [SOURCE, os.path.abspath(os.path.join(HERE, *[".."] * 3, "truffle", "src"))]
sys.dont_write_bytecode = True


class Callback:
    """What the callbacks of all libraries have in common, as far as the helpers use it."""

    def __init__(self):
        pass


def module(name, **contents):
    found = types.ModuleType(name)
    found.__dict__.update(contents)
    found.__spec__ = importlib.machinery.ModuleSpec(name, None)
    return found


class JobTest(unittest.TestCase):
    """A test inside a job, with fresh modules of the helpers."""

    IS_JOB = True

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="crucible-helpers-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        present, where = dict(os.environ), os.getcwd()
        self.addCleanup(os.environ.update, present)
        self.addCleanup(os.environ.clear)
        self.addCleanup(os.chdir, where)
        os.chdir(self.folder)
        for name in [name for name in os.environ if name.startswith("CRUCIBLE_")]:
            del os.environ[name]
        self.checkpoints = os.path.join(self.folder, "checkpoints")
        if self.IS_JOB:
            self.control_dir = os.path.join(self.folder, "control")
            os.makedirs(os.path.join(self.control_dir, "saved"))
            os.environ.update(CRUCIBLE_JOB_ID="job-x", CRUCIBLE_CONTROL_DIR=self.control_dir)
            os.environ.update(CRUCIBLE_CHECKPOINT_DIR=self.checkpoints)
        self.addCleanup(setattr, sys, "path", sys.path)
        sys.path = [each for each in sys.path if not os.path.exists(os.path.join(each, "crucible_job.py"))]
        self.before = dict(sys.modules)
        self.addCleanup(self.forget)
        self.forget()

    def forget(self):
        job = getattr(sys.modules.get("crucible.checkpoint._job"), "_job", None)
        if hasattr(job, "_pending"):
            job._pending = None  # it would be written at the end, wherever that is
        for name in list(sys.modules):
            if name not in self.before or name.startswith(("crucible.checkpoint", "crucible_job")):
                del sys.modules[name]

    def helper(self, name, **libraries):
        """Imports a module of the helpers with the libraries that it finds."""
        sys.modules.update({key.replace("__", "."): value for key, value in libraries.items()})
        return importlib.import_module("crucible.checkpoint." + name)

    def ask(self, what):
        """As the runner asks a program to save or to stop."""
        with open(os.path.join(self.control_dir, what + ".json"), "w") as file:
            json.dump({}, file)

    def withdraw(self, what):
        os.unlink(os.path.join(self.control_dir, what + ".json"))

    def told(self, name):
        # Progress is written at most ten times a second, and at the end.
        sys.modules["crucible.checkpoint._job"]._job._write_progress()
        with open(os.path.join(self.control_dir, name)) as file:
            return json.load(file)

    def declared(self):
        names = os.listdir(os.path.join(self.control_dir, "saved"))
        return sorted((self.told("saved/" + name)["step"], self.told("saved/" + name)["path"]) for name in names)

    def saved(self):
        return sorted(os.listdir(self.checkpoints))
