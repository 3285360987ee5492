import os
from unittest import mock

from support import FakeClock, FolderTest

from crucible_runner.artifacts import Keeper, half_of
from crucible_runner.store.file_store import FileStore
from crucible_runner.keys import Keys
from crucible_runner.store.retry import GaveUp
from crucible_runner.store.base import BLOCK_BYTES, StoreError


class KeeperTest(FolderTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.at("store"))
        self.store = FileStore(self.at("store"))
        self.remarks = []
        self.keeper = Keeper(self.store, Keys("job-a", 1), FakeClock(), self.remarks.append)
        self.found = {name: self.write("output/" + name, name) for name in ("a", "b", "c")}

    def keep(self, is_over=lambda: False):
        with mock.patch("crucible_runner.store.retry._FIRST_PAUSE_SECONDS", 0):
            self.keeper.keep(self.found, is_over)
        return [artifact["path"] for artifact in self.keeper.kept]

    def refuse(self, name, times):
        upload, refusals = self.store.upload, iter(range(times))

        def refusing(key, size):
            if key.endswith("/" + name) and next(refusals, None) is not None:
                raise StoreError("no room for %s" % name)
            return upload(key, size)

        self.store.upload = refusing

    def test_what_the_store_does_not_take_now_comes_after_all_the_others(self):
        self.refuse("a", 3)
        self.assertEqual(self.keep(), ["b", "c", "a"])
        self.assertEqual(self.store.get("jobs/job-a/attempts/1/artifacts/a"), b"a")
        self.assertIn("no room for a", self.remarks[0])
        self.assertRegex(self.remarks[1], "works again")

    def test_others_are_kept_where_one_never_is(self):
        self.refuse("b", 10**9)
        self.assertRaises(GaveUp, self.keep, lambda: len(self.keeper.kept) == 2)
        self.assertEqual([artifact["path"] for artifact in self.keeper.kept], ["a", "c"])

    def test_what_can_have_no_place_is_left_out_at_once(self):
        self.store.put("jobs/job-a/attempts/1/artifacts/b/of-something-else", b"")
        self.assertEqual(self.keep(), ["a", "c"])
        self.assertRegex("\n".join(self.remarks), "^the artifact b is not kept: .*Is a directory$")
        self.assertEqual(self.keeper.left_out, self.remarks)

    def test_what_is_larger_than_allowed_is_left_out_and_the_log_says_what_to_do(self):
        self.keeper = Keeper(self.store, Keys("job-a", 1), FakeClock(), self.remarks.append, gib_max=2)
        with open(self.found["b"], "wb") as file:
            file.truncate((2 << 30) + 1)
        with mock.patch("crucible_runner.artifacts._check_holes"):
            self.assertEqual(self.keep(), ["a", "c"])
        self.assertRegex("\n".join(self.remarks), "artifact b is not kept: it has 2 GiB.* may have 2: .*CRUCIBLE_ARTIFACT_MAX")

    def test_a_large_one_is_announced_before_it_is_read(self):
        with mock.patch("crucible_runner.artifacts._LARGE_BYTES", 0):
            self.keep()
        self.assertEqual(self.remarks[1], "uploading the artifact b (0.0 GiB); 1 of 3 artifacts are kept")

    def test_the_log_says_every_few_seconds_how_far_a_long_one_is(self):
        clock = FakeClock()
        self.keeper = Keeper(self.store, Keys("job-a", 1), clock, self.remarks.append)
        self.found = {"long": self.write("output/long", b"x" * (4 * BLOCK_BYTES), "wb")}

        def each_block_takes_six_seconds():
            clock.advance(6_000)
            return False

        self.keep(each_block_takes_six_seconds)
        self.assertEqual(
            self.remarks,
            [
                "hashing the artifact long: 50% of 0.0 GiB",
                "hashing the artifact long: 100% of 0.0 GiB",
            ],
        )

    def test_the_log_also_says_how_far_the_upload_is(self):
        self.found = {"long": self.write("output/long", b"x" * BLOCK_BYTES, "wb")}
        with mock.patch("crucible_runner.artifacts._TELL_MS", 0):
            self.keep()
        self.assertIn("uploading the artifact long: 100% of 0.0 GiB", self.remarks)

    def test_half_of_the_time_that_is_left_is_over_when_it_is_gone_or_taken_away(self):
        left = {"ms": 1_000}
        is_over = half_of(lambda: left["ms"])
        self.assertFalse(is_over())
        left["ms"] = 501
        self.assertFalse(is_over())
        left["ms"] = 500
        self.assertTrue(is_over())
        self.assertTrue(half_of(lambda: 0)())
        self.assertTrue(half_of(lambda: -1)())
        self.assertFalse(half_of(lambda: None)())

    def test_a_terabyte_of_holes_is_left_out_with_a_word(self):
        with open(self.at("output", "b"), "r+b") as file:
            file.truncate(1 << 40)
        self.assertEqual(self.keep(), ["a", "c"])
        self.assertRegex("\n".join(self.remarks), "b is not kept: it has 1024 GiB, but only 0 MiB are written")

    def test_small_artifacts_come_before_big_ones(self):
        self.write("output/a", "a" * 1000)
        self.assertEqual(self.keep(), ["b", "c", "a"])

    def test_whatever_is_wrong_with_one_the_others_are_kept(self):
        upload = self.store.upload

        def failing(key, size):
            if key.endswith("/b"):
                raise RuntimeError("our own mistake")
            return upload(key, size)

        self.store.upload = failing
        self.assertEqual(self.keep(), ["a", "c"])
        self.assertIn("b is not kept: our own mistake", "\n".join(self.remarks))

    def test_beats_tell_how_far_it_is_while_files_are_read_and_sent(self):
        told = []
        self.found["b"] = self.write("output/b", b"x" * (2 * BLOCK_BYTES), "wb")
        upload = self.store.upload

        def looking(key, size):
            told.append(self.keeper.saving.document())
            return upload(key, size)

        self.store.upload = looking
        self.assertIsNone(self.keeper.saving.document())
        self.keep()
        total = 2 + 2 * BLOCK_BYTES
        seen = [tuple(each[name] for name in ("filesDone", "bytesDone", "bytesRead")) for each in told]
        self.assertEqual(seen, [(0, 0, 1), (1, 1, 2), (2, 2, total)])
        self.assertEqual({(each["what"], each["filesTotal"], each["bytesTotal"]) for each in told}, {("artifacts", 3, total)})
        self.assertIsNone(self.keeper.saving.document())

    def test_what_is_left_out_is_done_and_counts_no_bytes(self):
        self.store.put("jobs/job-a/attempts/1/artifacts/a/of-something-else", b"")
        with open(self.found["b"], "wb") as file:
            file.truncate(1 << 40)
        told = []
        upload = self.store.upload
        self.store.upload = lambda key, size: told.append(self.keeper.saving.document()) or upload(key, size)
        self.keep()
        self.assertEqual([(each["filesDone"], each["bytesTotal"]) for each in told], [(0, 2), (1, 1)])
        self.assertIsNone(self.keeper.saving.document())

    def test_what_comes_again_is_not_counted_twice(self):
        self.refuse("a", 1)
        told, pause = [], lambda *_: told.append(self.keeper.saving.document())
        with mock.patch("crucible_runner.artifacts.Pauses.wait", pause):
            self.keep()
        self.assertEqual([(each["filesDone"], each["bytesDone"], each["bytesRead"]) for each in told], [(2, 2, 2)])
