"""A helper without its library says what to install."""

import importlib
import importlib.abc
import importlib.util
import sys
import unittest

LIBRARIES = {
    "pytorch": ("torch", "`pip install torch`"),
    "keras": ("keras", "`pip install keras`"),
    "huggingface": ("transformers", "`pip install transformers`"),
    "lightning": ("pytorch_lightning", "`pip install lightning` or `pip install pytorch-lightning`"),
}
#: Libraries, and those that they need.
MISSING = ("torch", "keras", "transformers", "lightning", "pytorch_lightning")


class Without(importlib.abc.MetaPathFinder):
    """Finds no module of these names, whether they are installed or not."""

    def __init__(self, missing, told):
        self.missing = missing
        self.told = told

    def find_spec(self, name, path=None, target=None):
        if name in self.missing:
            raise ModuleNotFoundError("No module named %r" % self.told.get(name, name), name=self.told.get(name, name))
        return None


class TestLibraries(unittest.TestCase):
    def error(self, helper, **told):
        finder = Without([one for one in MISSING if one != "lightning"], told)
        sys.meta_path.insert(0, finder)
        self.addCleanup(sys.meta_path.remove, finder)
        for name in [*MISSING, "crucible.checkpoint." + helper]:
            had = sys.modules.pop(name, None)
            if had is not None:
                self.addCleanup(sys.modules.__setitem__, name, had)
        with self.assertRaises(ModuleNotFoundError) as raised:
            importlib.import_module("crucible.checkpoint." + helper)
        return raised.exception

    def test_a_missing_library_is_named_with_its_package(self):
        for helper, (module, install) in LIBRARIES.items():
            if helper == "lightning" and importlib.util.find_spec("lightning") is not None:
                continue
            with self.subTest(helper=helper):
                error = self.error(helper)
                self.assertEqual(module, error.name)
                self.assertIn("Run %s in the environment" % install, str(error))

    def test_what_the_library_itself_misses_is_told_as_it_is(self):
        error = self.error("keras", keras="tensorflow")
        self.assertEqual(("tensorflow", "No module named 'tensorflow'"), (error.name, str(error)))


if __name__ == "__main__":
    unittest.main()
