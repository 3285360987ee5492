"""The S3 server of these tests, and what stands before it (test/support/fault-proxy.ts)."""

import json
import os
import sys
import unittest
import urllib.request
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

from support import FakeClock  # noqa: E402,F401  (puts the runner on the path)

from crucible_runner.clock import Clock  # noqa: E402
from crucible_runner.store.s3.client import Client  # noqa: E402
from crucible_runner.store.s3.credentials import Grants, Keyring, OwnKeys  # noqa: E402
from crucible_runner.store.s3.place import StorePlace  # noqa: E402
from crucible_runner.store.s3.s3_store import S3Store  # noqa: E402

PROXY = os.environ["CRUCIBLE_TEST_S3"]
BUCKET = os.environ["CRUCIBLE_TEST_S3_BUCKET"]
REGION = os.environ["AWS_REGION"]
MIB = 1024 * 1024


def steer(method, path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(PROXY + "/-/" + path, data, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
        return json.loads(response.read())


class ServerTest(unittest.TestCase):
    """Each test has a prefix of its own in the bucket, and no faults at first."""

    def setUp(self):
        self.prefix = "runner/%s/" % uuid.uuid4().hex
        self.grants = Grants(None)
        self.store = self.open()
        self.faults()
        self.addCleanup(self.faults)

    def open(self, **how):
        place = StorePlace(BUCKET, self.prefix, how.get("region", REGION), how.get("endpoint", PROXY))
        clock = how.get("clock") or Clock()
        sources = how.get("sources") or [self.grants, OwnKeys(os.environ, None)]
        clients = []
        keyring = Keyring(sources, lambda: clients[0].now_ms())
        clients.append(Client(place, None, keyring, clock))
        return S3Store(clients[0], self.prefix, self.grants)

    def faults(self, *rules):
        """Each is what it is about, what goes wrong, and how often."""
        steer("PUT", "rules", [{"match": about, "fault": fault, "times": n} for about, fault, n in rules])

    def seen(self, method=""):
        """The requests since the faults were last set."""
        return [line for line in steer("GET", "rules")["seen"] if line.startswith(method)]

    def read(self, key):
        download = self.store.download(key)
        return b"".join(download.blocks(0, download.size))


def answer(status, code, **headers):
    return {"kind": "answer", "status": status, "code": code, "headers": headers}


LOST = {"kind": "lost-answer"}
HANG = {"kind": "hang"}
