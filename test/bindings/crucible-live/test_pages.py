"""The Python of the pages for users, run against a deployment."""

import contextlib
import io
import runpy
import unittest
from pathlib import Path

from live_support import run, snippets, write_scripts

setUpModule = write_scripts


class TestPages(unittest.TestCase):
    def test_the_readme_submits_a_script(self):
        printed = run(snippets("bindings/python/crucible/README.md")[0])
        self.assertRegex(printed, r"^ec2:spot g\S+ \$\d")
        self.assertTrue(printed.endswith("succeeded\n"), printed)

    def test_the_readme_submits_a_function(self):
        source = snippets("bindings/python/crucible/README.md")[1]
        Path("readme_function.py").write_text(source)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            runpy.run_path("readme_function.py", run_name="__main__")
        self.assertRegex(printed.getvalue(), r"^\{'loss': 0.348\d+\}\nstep 1/10")

    def test_the_guide_submits_a_script_and_a_function(self):
        script, function = snippets("docs/guides/python.md")
        self.assertRegex(run(script), r"^1\. ec2:spot [^$]+\$(.*\n)+train-.* succeeded on ec2:spot, 100 %")
        Path("guide_function.py").write_text(function)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            runpy.run_path("guide_function.py", run_name="__main__")
        self.assertEqual("144\n", printed.getvalue())

    def test_the_readme_uses_asyncio(self):
        self.assertIn("path='result.txt'", run(snippets("bindings/python/crucible/README.md")[2]))
