"""An error about what was copied to be sent names the user's own files."""

import sys

from crucible import MLPlatform, UsageError
from unit_support import InNotebook

#: As the command line says it of the folder that the job file names.
REFUSES = """#!%s
import json, pathlib, sys
folder = json.loads(pathlib.Path(sys.argv[3]).read_text())["workdir"]
found = [str(one.relative_to(folder)) for one in sorted(pathlib.Path(folder).rglob(".env*"))]
text = ["The folder %%s has files that look like secrets, but files that are sent are not kept secret:" %% folder]
text += ["  %%s has a name for credentials" %% one for one in found]
text += ["Name them in .crucibleignore and give their values as secrets. A line such as !%%s there marks one as harmless." %% found[0]]
print(json.dumps({"schema": "crucible/1", "error": {"kind": "usage", "message": chr(10).join(text), "hint": None}}))
sys.exit(2)
""" % sys.executable


class TestOwnPaths(InNotebook):
    def setUp(self):
        super().setUp()
        path = self.folder / "refuses.py"
        path.write_text(REFUSES)
        self.platform = MLPlatform("%s %s" % (sys.executable, path))

    def message(self, submit):
        with self.assertRaises(UsageError) as raised:
            submit()
        text = str(raised.exception)
        self.assertNotRegex(text, "crucible-[a-z0-9_]{8}")
        self.assertRegex(text, "^The folder that is sent has files that look like secrets")
        return text

    def test_in_the_package_of_a_function(self):
        package = self.folder / "ownpackage"
        (package / "in side").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        for name in (".env", "in side/.env.x"):
            (package / name).write_text("A=1")
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        self.addCleanup(sys.modules.pop, "ownpackage", None)
        train = self.cell("import ownpackage\n\n@platform.job\ndef train():\n    return ownpackage\n", platform=self.platform)["train"]
        text = self.message(train)
        self.assertIn("  %s has a name for credentials\n" % (package / ".env"), text)
        self.assertIn("  %s has a name for credentials\n" % (package / "in side/.env.x"), text)
        self.assertIn("Name them in %s and" % (package / ".crucibleignore"), text)
        self.assertIn("A line such as !.env there", text)

    def test_in_files_of_a_program(self):
        data = self.folder / "data"
        data.mkdir()
        (data / ".env").write_text("A=1")
        text = self.message(lambda: self.platform.submit("x", files={"here/data": data}))
        self.assertIn("  %s has a name for credentials\n" % (data / ".env"), text)
        text = self.message(lambda: self.platform.submit("x", files=[data / ".env"]))
        self.assertIn("  %s has a name for credentials\n" % (data / ".env"), text)
