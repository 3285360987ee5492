"""Reads texts with one of the runner's readers: a line of base64 in, a line of JSON out with the processor time and what went wrong."""

import base64
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "runner"))

from crucible_runner import documents, globs  # noqa: E402
from crucible_runner.checkpoint import names, ranks  # noqa: E402
from crucible_runner.logs.lines import LineSplitter  # noqa: E402
from crucible_runner.logs.redact import Redactor  # noqa: E402
from crucible_runner.process.causes import cause_of  # noqa: E402
from crucible_runner.progress.reading import read  # noqa: E402
from crucible_runner.progress.tables import Tables  # noqa: E402
from crucible_runner.progress.tracker import Tracker  # noqa: E402
from crucible_runner.shapes import DocumentError  # noqa: E402


def lines(body):
    splitter, tracker, tables = LineSplitter(lambda: Redactor(["secret"])), Tracker(), Tables()
    printed = []
    for data in (body, b"\n"):
        printed += splitter.feed(data, 0)
        for writing in splitter.writings[-50:]:
            reading = tables.read(writing) or read(writing)
            if reading is not None:
                tracker.see(reading)
    printed += splitter.end()
    texts = [line.decode("utf-8", "replace") for line in printed[-20:]]
    cause_of(texts, texts)
    for name, value in tracker.progress._asdict().items():
        # The loss of a training that diverges has no limit, but it is a number.
        if value is not None and not abs(value) < (float("inf") if name == "loss" else 2**53):
            raise AssertionError("impossible %s %r" % (name, value))


def runner_globs(body):
    glob = body.decode("utf-8", "replace")
    globs.remarks_about([glob])
    globs.matches_any("a" * 255, [glob])
    globs.matches_any("/".join("a" * 200), [glob])


def runner_documents(body):
    for shape in (documents.HELPER_PROGRESS, documents.HELPER_SAVED):
        try:
            documents.parse(shape, body)
        except DocumentError:
            pass


def paths(body):
    # The system refuses longer paths.
    path = body[:4096].decode("utf-8", "replace")
    names.unit_of(path)
    names.template(path)
    names.member_of(path)
    names.is_record(path)
    names.is_unfinished(path)


READERS = {"lines": lines, "globs of the runner": runner_globs, "documents of the runner": runner_documents, "names": paths}


def main(reader):
    for line in sys.stdin:
        body = base64.b64decode(line)
        began, problem = time.process_time(), None
        try:
            READERS[reader](body)
        except Exception as error:
            problem = "%s: %s" % (type(error).__name__, error)
        print(json.dumps({"ms": 1000 * (time.process_time() - began), "problem": problem}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
