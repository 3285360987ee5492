"""Manifests made to harm the machine that restores them: test/runner/hostile-checkpoints.json, which the downloads of a client share."""

import hashlib
import json
import os

from support import HERE
from test_restore_order import RestoringTest

from crucible_runner.paths import remove_tree

BODY = b"x"
DIGEST = hashlib.sha256(BODY)


def cases():
    with open(os.path.join(os.path.dirname(HERE), "hostile-checkpoints.json"), encoding="utf-8") as file:
        return json.load(file)


def entry_of(file):
    fields = dict(file)
    is_stored = fields.pop("isStored", True)
    entry = {
        "sizeBytes": len(BODY),
        "parts": [DIGEST.hexdigest()],
        "digest": hashlib.sha256(DIGEST.digest()).hexdigest(),
        "mode": 0o644,
        "storedAt": "000000000009-1/files/%s" % ("x" if is_stored else "absent"),
    }
    return dict(entry, **fields)


class HostileCheckpointTest(RestoringTest):
    def setUp(self):
        super().setUp()
        self.write("evil", "untouched")

    def restored_step(self, case):
        remove_tree(self.at("checkpoints"))
        remove_tree(self.at("part"))
        self.store.put(self.keys.stored_file("000000000009-1/files/x"), BODY)
        self.save(5, 1)
        changes = {name: case[name] for name in ("links", "folders") if name in case}
        files = [entry_of(each) for each in case.get("files", [])]
        self.save(9, 1, changes=dict(changes, files=files, **case.get("fields", {})))
        return self.found().restored.checkpoint.step

    def test_a_hostile_checkpoint_gives_way_to_an_older_one_and_touches_nothing_outside(self):
        for case in cases():
            with self.subTest(case["name"]):
                self.assertEqual(self.restored_step(case), 5 if case["isRefused"] else 9)
                self.assertEqual(self.read("evil"), "untouched")
                self.assertLessEqual(set(os.listdir(self.folder)), {"checkpoints", "evil", "part", "store"})
                if case["isRefused"]:
                    self.assertEqual(os.listdir(self.at("checkpoints")), [])
                    self.assertLess(len(self.remarks[-2]), 1_000)
