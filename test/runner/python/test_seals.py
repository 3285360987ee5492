import json
import os

from support import GOLDEN, FolderTest

from crucible_runner.documents import GRANT, LEASE, dump, parse
from crucible_runner.sealing import open_sealed
from crucible_runner.seals import read_key, unseal


class SealsTest(FolderTest):
    def setUp(self):
        super().setUp()
        with open(os.path.join(GOLDEN, "vectors", "sealed.json"), encoding="utf-8") as file:
            self.vector = json.load(file)
        self.key = bytes.fromhex(self.vector["attemptKey"])

    def test_opens_the_vector(self):
        self.assertEqual(unseal(dump(self.vector["sealed"]), self.key), json.loads(self.vector["plain"]))

    def test_refuses_another_key_and_any_change(self):
        with self.assertRaisesRegex(ValueError, "another key"):
            unseal(dump(self.vector["sealed"]), bytes(32))
        for field in ("nonce", "text", "tag"):
            text = self.vector["sealed"][field]
            changed = ("B" if text[0] == "A" else "A") + text[1:]
            with self.assertRaises(ValueError):
                unseal(dump(dict(self.vector["sealed"], **{field: changed})), self.key)

    def test_opens_the_grant_that_the_other_side_sealed_into_a_lease(self):
        with open(os.path.join(GOLDEN, "lease-with-grant.json"), "rb") as file:
            lease = parse(LEASE, file.read())
        with open(os.path.join(GOLDEN, "grant-of-a-session.json"), "rb") as file:
            grant = parse(GRANT, file.read())
        opened = unseal(dump(lease["grant"]), bytes([7]) * 32)
        self.assertEqual(parse(GRANT, opened["grant"].encode()), grant)

    def test_the_bootstrap_opens_the_hand_over_of_the_vector(self):
        with open(os.path.join(GOLDEN, "vectors", "hand-over.json"), encoding="utf-8") as file:
            vector = json.load(file)
        with open(os.path.join(GOLDEN, "hand-over.json"), encoding="utf-8") as file:
            document = json.load(file)
        opened = json.loads(open_sealed(vector["sealed"], bytes.fromhex(vector["key"])).decode("utf-8"))
        self.assertEqual(json.loads(opened["handOver"]), document)

    def test_reads_keys(self):
        self.assertEqual(read_key(self.write("key", self.key.hex() + "\n")), self.key)
        self.assertRaises(ValueError, read_key, self.write("short", "ab"))
        self.assertRaises(ValueError, read_key, self.write("words", "not hexadecimal"))
