import os
from unittest import mock

from support import FakeClock, FolderTest

from crucible_runner.control.claim import ClaimedElsewhere, claim, machine_id, send_name
from crucible_runner.store.file_store import FileStore
from crucible_runner.store.retry import Trouble, persist
from crucible_runner.store.base import StoreError


class MachineIdTest(FolderTest):
    def test_is_made_once(self):
        made = machine_id(self.at("machine-id"))
        self.assertRegex(made, r"^unnamed-[0-9a-f]{32}$")
        self.assertEqual(machine_id(self.at("machine-id")), made)
        self.assertNotEqual(machine_id(self.at("another")), made)

    def test_a_full_disk_is_told_by_what_comes_after(self):
        self.assertRegex(machine_id(self.at("missing", "machine-id")), r"^unnamed-[0-9a-f]{32}$")

    def test_is_what_the_backend_has_written_down(self):
        self.assertEqual(machine_id(self.write("machine-id", "i-0f1e2d3c4b5a69788\n")), "i-0f1e2d3c4b5a69788")
        for nothing in ("", "\n", "<html>404 - Not Found</html>", "x" * 256, "i-1\ni-2"):
            with self.subTest(nothing):
                made = machine_id(self.write("machine-id", nothing))
                self.assertRegex(made, r"^unnamed-[0-9a-f]{32}$")
                self.assertEqual(self.read("machine-id"), made)


class SendNameTest(FolderTest):
    def test_is_what_the_backend_has_written_down(self):
        self.assertEqual(send_name(self.write("send-name", "train-1-s2\n")), "train-1-s2")

    def test_is_unknown_where_nobody_wrote_it_or_not_a_name(self):
        self.assertIsNone(send_name(self.at("send-name")))
        for nothing in ("", "two words", "x" * 256):
            with self.subTest(nothing):
                self.assertIsNone(send_name(self.write("send-name", nothing)))


class ClaimTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.store = FileStore(self.folder)

    def test_the_first_has_it_and_keeps_it(self):
        claim(self.store, "a/claim.json", "1" * 32)
        claim(self.store, "a/claim.json", "1" * 32)
        self.assertRaises(ClaimedElsewhere, claim, self.store, "a/claim.json", "2" * 32)

    def test_tells_the_send_that_made_its_machine(self):
        claim(self.store, "a/claim.json", "1" * 32, "train-1-s1")
        self.assertEqual(self.store.get("a/claim.json"), b'{"machine":"%s","send":"train-1-s1"}' % (b"1" * 32))
        claim(self.store, "a/claim.json", "1" * 32, "train-1-s1")

    def test_of_two_machines_of_one_send_one_has_it(self):
        claim(self.store, "a/claim.json", "1" * 32, "train-1-s1")
        self.assertRaises(ClaimedElsewhere, claim, self.store, "a/claim.json", "2" * 32, "train-1-s1")

    def test_is_ours_when_only_the_answer_was_lost(self):
        self.write("a/keep", "")
        link = os.link
        answers = ["refused", "lost"]

        def unreliable(source, target):
            answer = answers.pop(0) if answers else "told"
            if answer != "refused":
                link(source, target)
            if answer != "told":
                raise OSError("no answer")

        with mock.patch("os.link", unreliable), mock.patch("crucible_runner.store.retry._FIRST_PAUSE_SECONDS", 0):
            persist(
                lambda: claim(self.store, "a/claim.json", "1" * 32),
                lambda: False,
                Trouble("claiming", lambda _: None, FakeClock()),
            )
        self.assertEqual(answers, [])
        self.assertEqual(self.store.get("a/claim.json"), b'{"machine":"%s"}' % (b"1" * 32))

    def test_a_store_that_does_not_answer_is_nobody_elses_claim(self):
        store = FileStore(self.at("unmounted"))
        self.assertRaises(StoreError, claim, store, "a/claim.json", "1" * 32)
