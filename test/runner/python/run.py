"""Runs the tests in a folder (this one, unless it is named) and prints one JSON object for each: its name, whether it passed,
and what went wrong. Further arguments are the names of the only files to run."""

import json
import os
import sys
import unittest

from support import HERE


class Report(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.seen = []

    def _note(self, test, words, skipped=None):
        self.seen.append({"name": test.id(), "failure": words, "skipped": skipped})

    def addSuccess(self, test):
        self._note(test, None)

    def addFailure(self, test, error):
        self._note(test, self._exc_info_to_string(error, test))

    addError = addFailure

    def addSkip(self, test, reason):
        self._note(test, None, reason)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._note(subtest, self._exc_info_to_string(error, test))


def main(arguments):
    folder = HERE
    if arguments and os.path.isdir(arguments[0]):
        folder = os.path.abspath(arguments.pop(0))
    report = Report()
    for pattern in ["%s.py" % name for name in arguments] or ["test*.py"]:
        unittest.TestLoader().discover(folder, pattern).run(report)
    for each in report.seen:
        print(json.dumps(each))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
