"""Real output of programs, and what is read of it: test/runner/progress/corpus.json."""

import json
import os
import unittest

from support import HERE, FakeClock

from crucible_runner.logs.lines import LineSplitter
from crucible_runner.progress import Progress
from crucible_runner.logs.redact import Redactor

CORPUS = os.path.join(HERE, "..", "progress", "corpus.json")
FIELDS = {
    "step": "step",
    "total": "stepsTotal",
    "epoch": "epoch",
    "epochs": "epochsTotal",
    "batch": "batch",
    "batches": "batchesTotal",
    "loss": "loss",
    "percent": "percent",
}


def seen_after(parts, chunk=None):
    """What is known after each part; each writing is fed on its own, or all bytes in chunks of the same size."""
    progress = Progress("/nowhere/progress.json", FakeClock())
    progress.begin(0)
    splitter = LineSplitter(lambda: Redactor([]))
    for part in parts:
        data = [text.encode("utf-8") for text in part["output"]]
        if chunk is not None:
            whole = b"".join(data)
            data = [whole[at : at + chunk] for at in range(0, len(whole), chunk)]
        for piece in data:
            splitter.feed(piece, 0)
            progress.see(splitter.writings)
        document = progress.document() or {}
        seen = {name: document.get(field) for name, field in FIELDS.items()}
        if progress.is_done():
            seen["isDone"] = True
        yield {name: value for name, value in seen.items() if value is not None}


class CorpusTest(unittest.TestCase):
    def setUp(self):
        with open(CORPUS, encoding="utf-8") as file:
            self.cases = json.load(file)

    def test_has_at_least_sixty_styles_and_their_sources(self):
        self.assertGreater(len({case["name"] for case in self.cases}), 60)
        self.assertEqual(len({case["name"] for case in self.cases}), len(self.cases))
        self.assertTrue(all(case["source"] and case["parts"] for case in self.cases))

    def test_is_read_as_it_is_meant(self):
        for case in self.cases:
            for at, (part, seen) in enumerate(zip(case["parts"], seen_after(case["parts"]))):
                with self.subTest("%s, part %d" % (case["name"], at + 1)):
                    self.assertEqual(seen, part["expect"])

    def test_is_read_alike_however_it_arrives(self):
        for case in self.cases:
            expected = case["parts"][-1]["expect"]
            for chunk in (7, 700):
                with self.subTest("%s, %d bytes at a time" % (case["name"], chunk)):
                    self.assertEqual(list(seen_after(case["parts"], chunk))[-1], expected)

    def test_percent_never_falls(self):
        for case in self.cases:
            writings = [text for part in case["parts"] for text in part["output"]]
            before = 0.0
            for seen in seen_after([{"output": [text]} for text in writings]):
                with self.subTest(case["name"]):
                    self.assertGreaterEqual(seen.get("percent", before), before)
                    before = seen.get("percent", before)
