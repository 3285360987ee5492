import http.server
import os
import threading
from unittest import mock

from support import FakeClock, FolderTest, patient

from crucible_runner.endings import Failed
from crucible_runner.inputs.input_cache import Cached, InputCache, default_folder
from crucible_runner.inputs.fetching import Inputs
from crucible_runner.store.retry import GaveUp, Patience


class Server:
    """A small web server; `answers` are used up first, then it serves `body`, at most `most` bytes of it at a time."""

    def __init__(self):
        self.body = b"content"
        self.etag = '"1"'
        self.most = 1000
        self.knows_ranges = True
        self.heeds_if_match = True
        self.answers = []
        self.requests = []
        self.before_each = self.after_each = lambda: None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(dict(self.headers))
                outer.before_each()
                status, length = outer.answers.pop(0) if outer.answers else (200, None)
                if status == 200 and outer.etag and self.headers.get("If-None-Match") == outer.etag:
                    status = 304
                begin = 0
                if status == 200 and "Range" in self.headers and outer.knows_ranges:
                    status, begin = 206, int(self.headers["Range"][len("bytes=") : -1])
                    if outer.heeds_if_match and self.headers.get("If-Match") != outer.etag:
                        status = 412
                self.send_response(status)
                if outer.etag:
                    self.send_header("ETag", outer.etag)
                body = outer.body[begin:] if status in (200, 206) else b""
                if status == 206:
                    last = len(outer.body) - 1
                    self.send_header("Content-Range", "bytes %d-%d/%d" % (begin, last, last + 1))
                self.send_header("Content-Length", str(length or len(body)))
                self.end_headers()
                self.wfile.write(body[: outer.most])
                self.wfile.flush()
                outer.after_each()

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d/file" % self.server.server_port

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class InputsTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.close)
        patcher = mock.patch.dict(os.environ, {"no_proxy": "127.0.0.1"})
        patcher.start()
        self.addCleanup(patcher.stop)
        patcher = mock.patch("crucible_runner.store.retry._FIRST_PAUSE_SECONDS", 0.01)
        patcher.start()
        self.addCleanup(patcher.stop)
        self.clock = FakeClock()
        self.is_over = lambda: False
        self.remarks = []

    def fetch(self, source=None, name="work/data/file"):
        inputs = Inputs(
            InputCache(self.at("cache")),
            self.clock,
            self.remarks.append,
            Patience(lambda: self.is_over(), lambda: self.is_over()),
        )
        inputs.fetch(source or self.server.url, self.at(*name.split("/")))
        return self.read(name)

    def test_downloads_once_and_asks_whether_it_is_still_good(self):
        self.assertEqual(self.fetch(), "content")
        self.assertEqual(self.fetch(name="other/file"), "content")
        self.assertEqual([request.get("If-None-Match") for request in self.server.requests], [None, '"1"'])

    def test_downloads_again_what_has_changed(self):
        self.fetch()
        self.server.body, self.server.etag = b"new", '"2"'
        self.assertEqual(self.fetch(), "new")
        self.assertEqual(self.fetch(), "new")

    def test_what_the_workload_does_to_its_copy_does_not_reach_the_cache(self):
        self.fetch()
        self.write("work/data/file", "scribble")
        self.assertEqual(self.fetch(name="other/file"), "content")

    def test_a_damaged_cache_is_not_believed(self):
        self.fetch()
        (name,) = [name for name in os.listdir(self.at("cache")) if not name.endswith(".json")]
        self.write("cache/" + name, "damaged")
        self.assertEqual(self.fetch(), "content")
        self.write("cache/" + name + ".json", "{")
        self.assertEqual(self.fetch(), "content")

    def test_without_a_mark_of_the_server_nothing_is_kept(self):
        self.server.etag = None
        self.fetch()
        self.assertFalse(os.path.exists(self.at("cache")))

    def test_tries_again_what_may_pass(self):
        self.server.answers = [(503, None), (429, None), (200, 1000)]
        self.assertEqual(self.fetch(), "content")
        self.assertEqual(len(self.server.requests), 4)

    def test_says_that_it_tries_again(self):
        self.server.answers = [(503, None)] * 3
        self.is_over = lambda: self.clock.advance(7_000)
        self.assertEqual(self.fetch(), "content")
        self.assertRegex(
            self.remarks[0], r"the input http.* cannot be fetched now; trying for .* more: the server answered 503"
        )

    def test_says_how_much_has_arrived_while_a_try_lasts(self):
        told = threading.Event()

        def remark(text):
            self.remarks.append(text)
            told.set()

        inputs = Inputs(InputCache(None), self.clock, remark, Patience(lambda: False, lambda: False))
        self.server.before_each = lambda: told.wait(patient(10))
        with mock.patch("crucible_runner.inputs.download._TELL_MS", 10):
            inputs.fetch(self.server.url, self.at("file"))
        self.assertEqual(
            self.remarks[0], "the input %s is being fetched: nothing has arrived yet" % self.server.url
        )

    def test_stops_while_the_rest_does_not_arrive(self):
        self.server.body, self.server.most = b"x" * 10, 4
        held, given_up = threading.Event(), []
        self.addCleanup(held.set)
        self.server.after_each = lambda: held.wait(patient(5)) or given_up.append(True)
        looks = iter((False, True))
        self.is_over = lambda: next(looks, True)
        with self.assertRaisesRegex(GaveUp, "no time was left"):
            self.fetch()
        self.assertEqual(given_up, [])

    def ranges(self):
        return [request.get("Range") for request in self.server.requests]

    def test_goes_on_where_it_was_cut(self):
        self.server.most = 3
        self.assertEqual(self.fetch(), "content")
        self.assertEqual(self.ranges(), [None, "bytes=3-", "bytes=6-"])
        self.server.most = 1000
        self.assertEqual(self.fetch(name="other/file"), "content")
        self.assertEqual(self.server.requests[-1]["If-None-Match"], '"1"')
        self.assertEqual(len(self.server.requests), 4)

    def test_what_changes_between_two_cuts_is_never_mixed(self):
        for heeds_if_match in (True, False):
            server = self.server
            server.heeds_if_match, server.most = heeds_if_match, 3
            server.body, server.etag, server.requests = b"content", '"1"', []

            def change():
                if len(server.requests) == 2:
                    server.body, server.etag, server.most = b"changed", '"2"', 1000

            server.before_each = change
            self.assertEqual(self.fetch(name="work/%s" % heeds_if_match), "changed")
            self.assertEqual(self.ranges(), [None, "bytes=3-", None])

    def test_a_server_that_cannot_go_on_begins_anew(self):
        self.server.most, self.server.knows_ranges = 3, False

        def mend():
            self.server.most = 1000 if len(self.server.requests) > 2 else 3

        self.server.before_each = mend
        self.assertEqual(self.fetch(), "content")
        for etag in ('W/"1"', None):
            self.server.etag, self.server.requests, self.server.knows_ranges = etag, [], True
            self.assertEqual(self.fetch(name="weak/file"), "content")
            self.assertEqual(self.ranges(), [None, None, None])

    def test_waits_as_long_as_something_comes(self):
        self.server.most = 1
        self.server.before_each = lambda: self.clock.advance(200_000)
        self.assertEqual(self.fetch(), "content")
        self.server.most, self.server.etag, self.server.requests = 1, None, []
        with self.assertRaisesRegex(Failed, "ended after 1 of 7 bytes") as caught:
            self.fetch()
        self.assertEqual(caught.exception.reason, "input")
        self.assertEqual(len(self.server.requests), 3)

    def test_a_path_that_cannot_be_is_a_failure_of_the_input(self):
        self.write("work/data", "a file")
        with self.assertRaisesRegex(Failed, "cannot be put at .*work/data/file") as caught:
            self.fetch()
        self.assertEqual(caught.exception.reason, "no-input")

    def test_gives_up_at_once_what_cannot_pass(self):
        self.server.answers = [(404, None)]
        with self.assertRaisesRegex(Failed, "404") as caught:
            self.fetch()
        self.assertEqual(caught.exception.reason, "no-input")
        with self.assertRaisesRegex(Failed, "must begin with one of file, http, https"):
            self.fetch("gopher://x/y")

    def test_gives_up_in_the_end(self):
        source = self.server.url
        self.server.close()
        self.server.close = lambda: None
        self.clock.mono_ms = mock.Mock(side_effect=[0, 0, 10**9, 10**9])
        with self.assertRaisesRegex(Failed, "refused"):
            self.fetch(source)

    def test_stops_when_the_attempt_stops(self):
        self.is_over = lambda: True
        self.assertRaises(GaveUp, self.fetch)

    def test_copies_files_and_folders(self):
        self.write("src/a.txt", "a")
        self.assertEqual(self.fetch("file://" + self.at("src", "a.txt")), "a")
        inputs = Inputs(InputCache(None), self.clock, lambda _: None, Patience(self.is_over, self.is_over))
        inputs.fetch("file://" + self.at("src"), self.at("work", "copy"))
        self.assertEqual(self.read("work/copy/a.txt"), "a")
        with self.assertRaisesRegex(Failed, "file:///nothing/here does not exist on this machine"):
            inputs.fetch("file:///nothing/here", self.at("x"))
        with self.assertRaisesRegex(Failed, "has a folder there"):
            inputs.fetch("file://" + self.at("src", "a.txt"), self.at("work", "copy"))


class InputCacheTest(FolderTest):
    def test_the_longest_unused_makes_room(self):
        cache = InputCache(self.at("cache"), bytes_max=250)
        for age, name in enumerate(("old", "used", "new")):
            path = self.write("file", name * 30)
            cache.keep(Cached("http://x/" + name, "0" * 64, "e", None), path)
            os.utime(cache._path("http://x/" + name), (age, age))
        self.assertIsNone(cache.find("http://x/old"))
        self.assertIsNotNone(cache.find("http://x/used"))
        self.assertIsNotNone(cache.find("http://x/new"))

    def test_where_it_is(self):
        self.assertEqual(default_folder({"HOME": "/h"}), "/h/.cache/crucible/inputs")
        self.assertEqual(default_folder({"HOME": "/h", "XDG_CACHE_HOME": "/c"}), "/c/crucible/inputs")
        self.assertIsNone(default_folder({}))
