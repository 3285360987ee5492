"""Where a machine learns that it will be taken back."""

import http.server
import json
import threading
import unittest
from unittest import mock

import support  # noqa: F401
from crucible_runner.control import watch
from crucible_runner.documents import ORDER, parse
from crucible_runner.notices import NOTICE_SHAPES, ec2, open_hint

ACTION = "/latest/meta-data/spot/instance-action"
HINT = "/latest/meta-data/events/recommendations/rebalance"


class Handler(http.server.BaseHTTPRequestHandler):
    """A metadata service of version 2; each token is good for as long as the server says."""

    def do_PUT(self):
        self.server.tokens += 1
        self.answer(200, "token-%d" % self.server.tokens)

    def do_GET(self):
        if self.headers.get("X-aws-ec2-metadata-token") != "token-%d" % self.server.tokens:
            return self.answer(401, "")
        body = self.server.paths.get(self.path)
        self.answer(404 if body is None else 200, body or "")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode("utf-8"))

    def log_message(self, *_):
        pass


class InstanceMetadataTest(unittest.TestCase):
    def setUp(self):
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.server.tokens, self.server.paths = 0, {}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        endpoint = "http://127.0.0.1:%d" % self.server.server_port
        self.poll = ec2.open_source({}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": endpoint})
        self.hint = ec2.open_hint({}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": endpoint})

    def test_nothing_is_announced_until_it_is(self):
        self.assertIsNone(self.poll())
        self.server.paths[ACTION] = json.dumps({"action": "terminate", "time": "2026-11-21T10:00:00Z"})
        self.assertEqual(self.poll(), 1795255200000)

    def test_a_recommendation_to_leave_is_no_notice(self):
        self.assertIsNone(self.hint())
        self.server.paths[HINT] = json.dumps({"noticeTime": "2026-11-21T10:00:00Z"})
        self.assertEqual(self.hint(), 1795255200000)
        self.assertIsNone(self.poll())
        self.server.paths[HINT] = "{}"
        with self.assertRaisesRegex(OSError, "cannot be read"):
            self.hint()

    def test_an_instant_may_have_a_fraction(self):
        self.server.paths[ACTION] = json.dumps({"action": "stop", "time": "2026-11-21T10:00:00.250Z"})
        self.assertEqual(self.poll(), 1795255200250)

    def test_one_token_does_for_many_looks_and_a_new_one_is_got_when_it_is_refused(self):
        self.poll()
        self.poll()
        self.assertEqual(self.server.tokens, 1)
        self.server.tokens = 5
        self.assertIsNone(self.poll())
        self.assertEqual(self.server.tokens, 6)

    def test_what_cannot_be_read_is_told_and_asked_for_again(self):
        for body in ("no json", "[]", '{"action": "terminate"}', '{"action": "terminate", "time": "soon"}'):
            self.server.paths[ACTION] = body
            with self.assertRaisesRegex(OSError, "cannot be read"):
                self.poll()

    def test_a_service_that_is_not_there_is_told(self):
        poll = ec2.open_source({}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"})
        with self.assertRaises(OSError):
            poll()


class WatchTest(unittest.TestCase):
    def test_trouble_of_a_source_is_remarked_once_until_it_changes(self):
        answers = ["no answer", "no answer", None, "no answer", "refused", "no answer"]
        remarks, is_over = [], threading.Event()

        def poll():
            if not answers:
                is_over.set()
                raise SystemExit  # ends the thread
            answer = answers.pop(0)
            if answer is not None:
                raise OSError(answer)

        with mock.patch.object(watch, "_NOTICE_LOOK_SECONDS", 0.001):
            watch.watch_notice(poll, mock.Mock(), remarks.append, mock.Mock())
            self.assertTrue(is_over.wait(support.patient(10)))
        self.assertEqual(remarks, ["no answer", "refused", "no answer"])


class OrderTest(unittest.TestCase):
    def test_only_instance_metadata_gives_hints(self):
        self.assertIsNone(open_hint({"kind": "file", "path": "/nowhere"}))
        self.assertTrue(callable(open_hint({"kind": "instance-metadata"})))

    def test_every_source_has_a_shape_and_an_order_may_name_it(self):
        self.assertEqual(sorted(NOTICE_SHAPES), ["file", "instance-metadata", "none"])
        with open(support.GOLDEN + "/order-minimal.json", "rb") as file:
            order = json.loads(file.read().decode("utf-8"))
        order["notice"] = {"kind": "instance-metadata"}
        self.assertEqual(parse(ORDER, json.dumps(order).encode("utf-8"))["notice"]["kind"], "instance-metadata")
