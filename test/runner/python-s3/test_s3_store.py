import threading
from unittest import mock

from server import BUCKET, HANG, LOST, PROXY, FakeClock, ServerTest, answer, steer

from crucible_runner.store.s3 import client as s3_client

from crucible_runner.store.s3 import wire as s3_wire
from crucible_runner.clock import Clock
from crucible_runner.store.s3.s3_store import S3Store, open_s3_store
from crucible_runner.store.base import StoreError, StoreRefused
from crucible_runner.store.opening import open_store


class StoreTest(ServerTest):
    def test_puts_gets_lists_and_deletes(self):
        self.store.put("jobs/a/one", b"1")
        self.store.put("jobs/a/one", b"11")
        self.store.put("jobs/a/deep/two", b"2")
        self.store.put("jobs/a/empty", b"")
        self.assertEqual(self.store.get("jobs/a/one"), b"11")
        self.assertEqual(self.store.get("jobs/a/empty"), b"")
        self.assertIsNone(self.store.get("jobs/a/three"))
        self.assertIsNone(self.store.get("jobs/a/deep"))
        self.assertEqual(self.store.list("jobs/a/"), ["jobs/a/empty", "jobs/a/one"])
        self.assertEqual(self.store.folders("jobs/a/"), ["deep"])
        self.assertEqual(self.store.list("jobs/b/"), [])
        self.store.delete("jobs/a/deep/two")
        self.store.delete("jobs/a/deep/two")
        self.assertEqual(self.store.folders("jobs/a/"), [])

    def test_names_of_all_kinds(self):
        names = ["ü b+c", "a&b<c>", "%41", "~(1)'*!", "\U0001f600"]
        for name in names:
            self.store.put("odd/%s/x" % name, name.encode())
        self.assertEqual(self.store.folders("odd/"), sorted(names))
        for name in names:
            self.assertEqual(self.store.get("odd/%s/x" % name), name.encode())
            self.assertEqual(self.store.list("odd/%s/" % name), ["odd/%s/x" % name])

    def test_lists_over_several_pages(self):
        for number in range(7):
            self.store.put("many/%d" % number, b"")
        entries = listed_in_small_pages(self.store)
        self.assertEqual(entries, ["many/%d" % number for number in range(7)])

    def test_of_many_at_once_one_wins(self):
        won = []

        def put(number):
            if self.open().put_if_absent("a/b", b"%d" % number):
                won.append(number)

        threads = [threading.Thread(target=put, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(won), 1)
        self.assertEqual(self.store.get("a/b"), b"%d" % won[0])

    def test_refuses_keys_that_lead_elsewhere(self):
        for key in ("", "/a", "a//b", "../a", "a/./b", ".tmp/a", "a\0b"):
            self.assertRaises(ValueError, self.store.get, key)

    def test_is_opened_by_its_url(self):
        url = "s3://%s/%s?endpoint=%s" % (BUCKET, self.prefix, PROXY)
        store = open_store(url)
        self.assertIsInstance(store, S3Store)
        store.put("a", b"1")
        self.assertEqual(self.store.get("a"), b"1")
        with mock.patch.dict("os.environ", {"AWS_ENDPOINT_URL_S3": PROXY}):
            self.assertEqual(open_s3_store("s3://%s/%s" % (BUCKET, self.prefix), None, None).get("a"), b"1")

    def test_a_bucket_that_is_not_there_is_not_an_empty_store(self):
        store = open_s3_store("s3://no-such-bucket?endpoint=" + PROXY, None, None)
        for ask in (
            lambda: store.get("a"),
            lambda: store.list("a/"),
            lambda: store.folders("a/"),
            lambda: store.put("a", b""),
            lambda: store.put_if_absent("a", b""),
        ):
            self.assertRaisesRegex(StoreError, "no-such-bucket.* correct the store's URL", ask)


class TroubleTest(ServerTest):
    def test_an_own_success_is_known_though_its_answer_was_lost(self):
        self.faults(("^PUT", LOST, 2))
        self.assertTrue(self.store.put_if_absent("a", b"same"))
        self.assertFalse(self.store.put_if_absent("a", b"same"))

    def test_another_one_s_success_is_not_taken_for_one_s_own(self):
        self.assertTrue(self.open().put_if_absent("a", b"same"))
        self.faults(("^PUT", LOST, 1))
        self.assertFalse(self.store.put_if_absent("a", b"same"))

    def test_a_conflict_is_put_again(self):
        self.faults(("^PUT", answer(409, "ConditionalRequestConflict"), 2))
        self.assertTrue(self.store.put_if_absent("a", b"1"))
        self.assertEqual(self.store.get("a"), b"1")

    def test_small_trouble_passes_unseen(self):
        for fault in (
            answer(503, "SlowDown"),
            answer(500, "InternalError"),
            answer(400, "RequestTimeout"),
            LOST,
            {"kind": "cut-request", "afterBytes": 0},
        ):
            with self.subTest(fault):
                self.faults(("^PUT", fault, 2))
                self.store.put("a", b"1")
                self.assertEqual(len(self.seen("PUT")), 3)

    def test_lasting_trouble_is_told_with_what_the_store_says(self):
        self.faults(("^GET", answer(503, "SlowDown"), 100))
        with mock.patch.object(s3_client.time, "sleep"):
            self.assertRaisesRegex(StoreError, "503 SlowDown Words about SlowDown", self.store.get, "a")

    def test_what_will_not_pass_is_not_tried_again(self):
        self.faults(("^PUT", answer(403, "AccessDenied"), 100))
        with self.assertRaisesRegex(StoreRefused, "the runner's environment: allow the identity that runs jobs"):
            self.store.put("a", b"1")
        self.assertEqual(len(self.seen()), 1)

    def test_a_key_that_the_store_can_never_hold_is_not_put_again(self):
        for code in ("KeyTooLongError", "NotImplemented"):
            with self.subTest(code):
                self.faults(("^PUT", answer(501, code), 100))
                self.assertRaisesRegex(ValueError, code, self.store.put, "a", b"1")
                self.assertEqual(len(self.seen()), 1)

    def test_a_server_that_hangs_is_left(self):
        self.store.put("a", b"1")
        self.faults(("^GET", HANG, 1))
        with mock.patch.object(s3_client.Ask, "__new__", with_silence(0.3)):
            self.assertEqual(self.store.get("a"), b"1")

    def test_a_server_that_trickles_is_left(self):
        self.store.put("a", b"1" * 1000)
        self.faults(("^GET", {"kind": "trickle", "everyMs": 50}, 1))
        with mock.patch.multiple(s3_wire, _GRACE_SECONDS=0.2, _LOOK_SECONDS=0.1, _BYTES_PER_SECOND_MIN=10_000):
            self.assertEqual(self.open().get("a"), b"1" * 1000)
        self.assertEqual(len(self.seen("GET")), 2)

    def test_connections_that_the_server_has_closed_are_no_trouble(self):
        self.store.put("a", b"1")
        steer("GET", "drop")
        with mock.patch.object(s3_client, "_pause", side_effect=AssertionError("there is nothing to wait for")):
            self.store.put("a", b"2")
        self.assertEqual(self.store.get("a"), b"2")

    def test_a_store_that_is_away_is_no_empty_store(self):
        store = self.open(endpoint="http://127.0.0.1:1")
        with mock.patch.object(s3_client.time, "sleep"):
            self.assertRaisesRegex(StoreError, "refused", store.get, "a")


class PlaceTest(ServerTest):
    def test_the_bucket_s_region_is_learnt_from_the_server(self):
        store = self.open(region="us-west-2")
        store.put("a", b"1")
        self.assertEqual(store.get("a"), b"1")
        self.assertEqual(len(self.seen("PUT")), 2)
        self.assertEqual(len(self.seen("GET")), 1)

    def test_the_clock_of_the_machine_may_be_wrong(self):
        clock = FakeClock(wall_ms=Clock().wall_ms() - 2 * 60 * 60_000)
        store = self.open(clock=clock)
        store.put("a", b"1")
        self.assertEqual(self.store.get("a"), b"1")


def with_silence(seconds):
    """The requests of the client, with less patience."""
    new = s3_client.Ask.__new__

    def make(cls, *args, **named):
        made = new(cls, *args, **named)
        return new(cls, *made[:6], seconds)

    return make


def listed_in_small_pages(store):
    ask = store._client.ask

    def small(request):
        if request.key == "":
            request = request._replace(query=list(request.query) + [("max-keys", "2")])
        return ask(request)

    with mock.patch.object(store._client, "ask", small):
        return store.list("many/")
