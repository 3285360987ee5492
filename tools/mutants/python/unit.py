"""Runs tests of the runner's parts in the folder of a test suite.

    unit.py survey FOLDER        runs all tests; prints a JSON object for each: its name, milliseconds, and whether it passed
    unit.py run FOLDER NAME...   runs the named tests to the first failure, whose name it prints
"""

import json
import os
import sys
import time
import unittest


class Survey(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        # What notes that a mutant is reached adds the name of the test.
        sys.crucible_test = test.id()
        self._began, self._bad = time.monotonic(), len(self.failures) + len(self.errors) + len(self.skipped)

    def stopTest(self, test):
        is_passed = len(self.failures) + len(self.errors) + len(self.skipped) == self._bad
        ms = int((time.monotonic() - self._began) * 1000)
        print(json.dumps({"name": test.id(), "ms": ms, "isPassed": is_passed}))
        sys.crucible_test = ""


def main(mode, folder, *names):
    os.chdir(folder)
    sys.path.insert(0, os.getcwd())
    if mode == "survey":
        unittest.TestLoader().discover(".", "test*.py").run(Survey())
        return 0
    result = unittest.TestResult()
    result.failfast = True
    unittest.TestLoader().loadTestsFromNames(names).run(result)
    for test, _ in result.failures + result.errors:
        print(test.id())
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    # Threads of a broken runner may never end.
    os._exit(code)
