import json
import os
import time
import unittest

from support import GOLDEN, RUNNER

from crucible_runner import documents
from crucible_runner.shapes import DocumentError, list_of, literal, or_null, record, tagged, text, whole

_REASONS = ("completed", "workload", "setup", "bundle", "input", "no-input", "store-refused", "image", "engine", "secrets", "disk-full", "image-login")
_REASONS += ("registry", "interrupted", "lease", "late", "runner") + documents.DRAIN_REASONS
_line = {"n": whole(1), "t": whole(), "m": text}
# The documents that the runner writes and never reads.
WRITTEN = {
    "result": record(
        {
            "version": literal(1),
            "attemptId": text,
            "outcome": literal("succeeded", "stopped", "failed"),
            "reason": literal(*_REASONS),
            "message": text,
            "exitCode": or_null(whole()),
            "signal": or_null(text),
            "progress": or_null(documents._PROGRESS),
            "checkpoint": or_null(documents._checkpoint),
            "restoredFrom": or_null(documents._checkpoint),
            "artifacts": list_of(record({"path": text, "sizeBytes": whole(), "sha256": documents._sha256})),
            "phases": documents._PHASES,
            "logLines": whole(),
            "finishedAtMs": whole(),
        },
        optional=dict(documents._TIMES, **documents._CHECKPOINT_NEWS, **documents._TRACKERS),
    ),
    "log-line": tagged(
        "s",
        {
            "out": record(_line),
            "err": record(_line),
            "runner": record(_line),
            "gap": record(dict(_line, lost=whole(1))),
        },
    ),
    "helper-stop": record({"reason": text, "windowMs": whole()}),
}
SHAPES = {
    "order": documents.ORDER,
    "limits": documents.LIMITS,
    "claim": documents.CLAIM,
    "lease": documents.LEASE,
    "drain": documents.DRAIN,
    "grant": documents.GRANT,
    "beat": documents.BEAT,
    "manifest": documents.MANIFEST,
    "restores": documents.RESTORES,
    "sealed": documents.SEALED,
    "helper-progress": documents.HELPER_PROGRESS,
    "helper-saved": documents.HELPER_SAVED,
}
SHAPES.update(WRITTEN)


def golden(folder):
    """Each golden document with its shape: name, shape, bytes."""
    for name in sorted(os.listdir(folder)):
        kinds = [kind for kind in SHAPES if name.startswith(kind)]
        if name.endswith(".json") and kinds:
            with open(os.path.join(folder, name), "rb") as file:
                yield name, SHAPES[max(kinds, key=len)], file.read()


class GoldenTest(unittest.TestCase):
    def test_every_golden_document_is_read_and_written_again_without_loss(self):
        seen = 0
        for name, shape, body in golden(GOLDEN):
            with self.subTest(name):
                parsed = documents.parse(shape, body)
                if "later-version" not in name:
                    self.assertEqual(parsed, json.loads(body.decode("utf-8")))
                self.assertEqual(documents.parse(shape, documents.dump(parsed)), parsed)
                seen += 1
        self.assertGreater(seen, 25)

    def test_fields_of_a_later_version_are_ignored(self):
        with open(os.path.join(GOLDEN, "order-with-fields-of-a-later-version.json"), "rb") as file:
            order = documents.parse(documents.ORDER, file.read())
        self.assertNotIn("priority", order)
        self.assertNotIn("compress", order["checkpoint"])
        self.assertEqual(order["notice"], {"kind": "none"})

    def test_every_invalid_document_is_refused_with_the_name_of_its_field(self):
        seen = 0
        for name, shape, body in golden(os.path.join(GOLDEN, "invalid")):
            with self.subTest(name):
                with self.assertRaises(DocumentError) as caught:
                    documents.parse(shape, body)
                self.assertRegex(
                    str(caught.exception), r"^[a-zA-Z.\[\]0-9]+ (must|is missing)|^the document must"
                )
                seen += 1
        self.assertGreater(seen, 25)

    def test_what_is_torn_is_refused(self):
        for body in (b"", b'{"version": 1, "jobId": ', b"\xff\xfe", b"[]", b"null"):
            with self.subTest(body):
                self.assertRaises(DocumentError, documents.parse, documents.ORDER, body)


class VersionTest(unittest.TestCase):
    def test_the_sources_are_python_3_8(self):
        import ast

        seen = 0
        for folder, _, names in os.walk(RUNNER):
            for name in names:
                if name.endswith(".py"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        ast.parse(file.read(), name, feature_version=(3, 8))
                    seen += 1
        self.assertGreater(seen, 30)


class ForeignJsonTest(unittest.TestCase):
    def test_numbers_without_end_and_bottomless_nesting_are_refused_in_no_time(self):
        began = time.monotonic()
        forms = ('{"step": %s}' % ("9" * 2_000_000), '{"step": 1, "loss": %s}' % ("9" * 2_000_000), "[" * 1_000_000)
        for text in (*forms, '{"step": 1, "loss": NaN}', '{"step": 1, "loss": 1e999}', '{"step": 1, "loss": -Infinity}'):
            with self.assertRaises(DocumentError):
                documents.parse(documents.HELPER_PROGRESS, text.encode())
        self.assertLess(time.monotonic() - began, 2)

    def test_half_a_surrogate_pair_does_not_keep_a_document_from_being_written(self):
        self.assertEqual(documents.dump({"missing": "a\ud800b"}), b'{"missing":"a?b"}')
