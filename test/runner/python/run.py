"""Runs all tests here, or those of one file (`run.py test_claim`), and prints one JSON object for each: its name, whether it
passed, and what went wrong."""

import json
import sys
import unittest

from support import HERE


class Report(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.seen = []

    def _note(self, test, words):
        self.seen.append({"name": test.id(), "failure": words})

    def addSuccess(self, test):
        self._note(test, None)

    def addFailure(self, test, error):
        self._note(test, self._exc_info_to_string(error, test))

    addError = addFailure

    def addSkip(self, test, reason):
        self._note(test, None)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._note(subtest, self._exc_info_to_string(error, test))


def main(name="test*"):
    report = Report()
    unittest.defaultTestLoader.discover(HERE, name + ".py").run(report)
    for each in report.seen:
        print(json.dumps(each))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
