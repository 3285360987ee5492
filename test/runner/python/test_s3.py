import io
import json
import os
import socket
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock
from urllib.error import HTTPError

from support import GOLDEN, FakeClock, FolderTest

from crucible_runner.endings import Failed
from crucible_runner.imds import Metadata
from crucible_runner.store.s3.access import Access, find_access
from crucible_runner.clock import Clock
from crucible_runner.store.s3.client import NOTHING, Client
from crucible_runner.store.s3.credentials import Grants, Keyring, MachineRole, OwnKeys
from crucible_runner.inputs.s3_input import Bucket
from crucible_runner.store.s3.place import StorePlace, parse_store_url
from crucible_runner.store.s3.s3_store import S3Store
from crucible_runner.store.s3.wire import Broken, Wire
from crucible_runner.store.base import StoreError
from crucible_runner.store.s3.sigv4 import Credentials, Request, signed_headers

# The published examples: "Signature Calculations for the Authorization Header", Amazon S3 API Reference.
EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None, "")
HOST = "examplebucket.s3.amazonaws.com"
STAMP = "20130524T000000Z"


class SignatureTest(unittest.TestCase):
    def signature(self, get, credentials=EXAMPLE):
        headers = signed_headers(get, credentials, "us-east-1", STAMP)
        return headers["Authorization"].rpartition("=")[2]

    def test_the_published_example_of_an_object(self):
        get = Request("GET", HOST, "/test.txt", (), {"Range": "bytes=0-9"})
        headers = signed_headers(get, EXAMPLE, "us-east-1", STAMP)
        self.assertEqual(
            headers["Authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        )

    def test_the_published_example_of_a_listing(self):
        get = Request("GET", HOST, "/", (("prefix", "J"), ("max-keys", "2")), {})
        self.assertEqual(get.target, "/?max-keys=2&prefix=J")
        self.assertEqual(
            self.signature(get), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        )

    def test_the_published_example_of_a_parameter_without_a_value(self):
        self.assertEqual(
            self.signature(Request("GET", HOST, "/", (("lifecycle", ""),), {})),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        )

    def test_a_session_token_is_signed_too(self):
        get = Request("GET", HOST, "/", (), {})
        session = EXAMPLE._replace(token="token")
        self.assertEqual(signed_headers(get, session, "r", STAMP)["x-amz-security-token"], "token")
        self.assertNotEqual(self.signature(get), self.signature(get, session))

    def test_names_are_sent_as_they_are_signed(self):
        get = Request("GET", HOST, "/a b/ü+~(1).txt", (("prefix", "a b/+"),), {})
        self.assertEqual(get.target, "/a%20b/%C3%BC%2B~%281%29.txt?prefix=a%20b%2F%2B")


class AccessTest(FolderTest):
    def find(self, **job):
        return find_access(job, self.folder)

    def test_without_anything_asks_as_anybody_may(self):
        self.assertEqual(self.find(), Access(None, "us-east-1", None))
        self.assertEqual(find_access({}, None), Access(None, "us-east-1", None))
        self.assertIn("without credentials", self.find().words)

    def test_the_jobs_own_variables_come_first(self):
        self.write(".aws/credentials", "[default]\naws_access_key_id = F\naws_secret_access_key = G\n")
        keys = {"AWS_ACCESS_KEY_ID": "K", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T"}
        access = self.find(**dict(keys, AWS_DEFAULT_REGION="eu-west-1"))
        self.assertEqual(access.credentials[:3], ("K", "S", "T"))
        self.assertEqual(access.region, "eu-west-1")
        self.assertIn("the job's env or secrets", access.words)
        self.assertEqual(self.find(AWS_REGION="a", AWS_DEFAULT_REGION="b").region, "a")

    def test_half_of_a_pair_is_an_error(self):
        self.assertRaisesRegex(Failed, "add AWS_SECRET_ACCESS_KEY", self.find, AWS_ACCESS_KEY_ID="K")
        self.assertRaisesRegex(Failed, "add AWS_ACCESS_KEY_ID", self.find, AWS_SECRET_ACCESS_KEY="S")

    def test_profiles(self):
        self.write(
            ".aws/credentials",
            "[default]\naws_access_key_id=D\naws_secret_access_key=d%x\n"
            "[other]\naws_access_key_id = O\naws_secret_access_key = o\naws_session_token = t\n",
        )
        self.write(".aws/config", "[default]\nregion = eu-north-1\n[profile other]\nregion = eu-south-1\n")
        access = self.find()
        self.assertEqual((access.credentials[:3], access.region), (("D", "d%x", None), "eu-north-1"))
        self.assertIn("profile default", access.words)
        access = self.find(AWS_PROFILE="other")
        self.assertEqual((access.credentials[:3], access.region), (("O", "o", "t"), "eu-south-1"))
        self.assertIsNone(self.find(AWS_PROFILE="third").credentials)
        self.write("elsewhere", "[default]\naws_access_key_id=E\naws_secret_access_key=e\n")
        access = self.find(AWS_SHARED_CREDENTIALS_FILE=self.at("elsewhere"))
        self.assertEqual(access.credentials.key_id, "E")

    def test_a_file_that_is_none_is_named(self):
        self.write(".aws/config", "nonsense")
        self.assertRaisesRegex(Failed, r"\.aws/config is invalid", self.find)

    def test_endpoints(self):
        self.assertEqual(self.find(AWS_ENDPOINT_URL="http://a:1/").endpoint, "http://a:1")
        both = {"AWS_ENDPOINT_URL": "http://a:1", "AWS_ENDPOINT_URL_S3": "http://b:2"}
        self.assertEqual(self.find(**both).endpoint, "http://b:2")


class PlaceTest(unittest.TestCase):
    def test_the_region_that_the_server_names_is_believed_once(self):
        bucket = Bucket("data", Access(None, "eu-west-1", None), FakeClock())

        def judge(region):
            error = HTTPError("", 301, "Moved", {"x-amz-bucket-region": region}, io.BytesIO())
            with error:
                return bucket.judge(error, "a")

        self.assertTrue(judge("eu-north-1").is_worth_another_try)
        verdict = judge("eu-south-1")
        self.assertFalse(verdict.is_worth_another_try)
        self.assertIn("set AWS_REGION", verdict.words)

    def url(self, bucket, region="eu-west-1", endpoint=None):
        with mock.patch("urllib.request.OpenerDirector.open") as asked:
            Bucket(bucket, Access(None, region, endpoint), FakeClock()).open("a b/c", (), {}, 1)
        return asked.call_args[0][0].full_url

    def test_where_a_bucket_is(self):
        self.assertEqual(self.url("data"), "https://data.s3.eu-west-1.amazonaws.com/a%20b/c")
        self.assertEqual(self.url("data", "cn-north-1"), "https://data.s3.cn-north-1.amazonaws.com.cn/a%20b/c")
        # The certificate of S3 has one label for the bucket.
        self.assertEqual(self.url("my.data"), "https://s3.eu-west-1.amazonaws.com/my.data/a%20b/c")
        self.assertEqual(self.url("data", endpoint="http://h:1/s3"), "http://h:1/s3/data/a%20b/c")


class StoreUrlTest(unittest.TestCase):
    def test_what_a_url_says(self):
        self.assertEqual(parse_store_url("s3://data"), StorePlace("data", "", None, None))
        self.assertEqual(
            parse_store_url("s3://data/team%20a/b/?region=eu-west-1"),
            StorePlace("data", "team a/b/", "eu-west-1", None),
        )
        for endpoint in ("http%3A%2F%2F127.0.0.1%3A9000", "http://127.0.0.1:9000/"):
            place = parse_store_url("s3://data/x?endpoint=%s&region=r" % endpoint)
            self.assertEqual(place, StorePlace("data", "x/", "r", "http://127.0.0.1:9000"))

    def test_what_is_wrong_with_one(self):
        for url, words in (
            ("s3://", "names no bucket"),
            ("s3:///prefix", "names no bucket"),
            ("s3://a", "'a' is not a valid bucket name"),
            ("s3://key:secret@data", "is not a valid bucket name"),
            ("s3://data?regoin=x", "unknown parameter 'regoin'"),
            ("s3://data?region=x&region=y", "may occur once"),
            ("s3://data?endpoint=127.0.0.1:9000", "must begin with http://"),
            ("s3://data/a/../b", "not a plain path"),
        ):
            with self.subTest(url):
                self.assertRaisesRegex(ValueError, words, parse_store_url, url)


class MetadataServer:
    """The metadata service of one machine: roles by path, and what was asked."""

    def __init__(self):
        self.texts = {}
        self.asked = []
        self.token = "token-1"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, text=""):
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def do_PUT(self):
                outer.asked.append("PUT " + self.path)
                is_right = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "").isdigit()
                self.answer(200 if is_right else 400, outer.token)

            def do_GET(self):
                outer.asked.append("GET " + self.path)
                if self.headers.get("X-aws-ec2-metadata-token") != outer.token:
                    return self.answer(401)
                text = outer.texts.get(self.path)
                return self.answer(404) if text is None else self.answer(200, text)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.environment = {
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:%d/" % self.server.server_port
        }

    def role(self, key_id, expiration):
        path = "/latest/meta-data/iam/security-credentials/"
        self.texts[path] = "node\n"
        self.texts[path + "node"] = json.dumps(
            {
                "Code": "Success",
                "AccessKeyId": key_id,
                "SecretAccessKey": "secret",
                "Token": "session",
                "Expiration": expiration,
            }
        )

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class StoreDateTest(unittest.TestCase):
    def test_each_answer_of_the_store_has_its_date(self):
        server = MetadataServer()
        self.addCleanup(server.close)
        endpoint = server.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"].rstrip("/")
        own = OwnKeys({"AWS_ACCESS_KEY_ID": "K", "AWS_SECRET_ACCESS_KEY": "S"}, None)
        clock = Clock()
        place = StorePlace("bucket", "", "us-east-1", endpoint)
        store = S3Store(Client(place, None, Keyring([own], clock.wall_ms), clock), "", Grants(None))
        dates = []
        store.on_date(dates.append)
        with self.assertRaises(StoreError):  # also an answer that refuses
            store.get("absent")
        self.assertLess(abs(dates[0] - clock.wall_ms()), 60_000)


class MetadataTest(unittest.TestCase):
    def setUp(self):
        self.server = MetadataServer()
        self.addCleanup(self.server.close)
        self.clock = FakeClock()
        self.clock.set_wall(1_800_000_000_000)  # 2027-01-15T08:00:00Z
        self.role = MachineRole(Metadata(self.server.environment), self.clock)

    def test_the_role_s_keys_are_kept_until_shortly_before_they_end(self):
        self.server.role("K1", "2027-01-15T09:00:00Z")
        found = self.role.find(False)
        self.assertEqual(found[:3], ("K1", "secret", "session"))
        self.assertEqual(found.expires_at_ms, 1_800_003_600_000)
        self.assertIn("the role node of this machine", found.origin)
        self.server.role("K2", "2027-01-15T15:00:00Z")
        asked = len(self.server.asked)
        self.clock.advance(54 * 60_000)
        self.assertEqual(self.role.find(False).key_id, "K1")
        self.assertEqual(len(self.server.asked), asked)
        self.clock.advance(2 * 60_000)
        self.assertEqual(self.role.find(False).key_id, "K2")

    def test_a_token_that_has_ended_is_renewed(self):
        self.server.role("K1", "2027-01-15T09:00:00Z")
        self.role.find(False)
        self.server.token = "token-2"
        self.server.role("K2", "2027-01-15T09:00:00Z")
        self.clock.advance(60_000)
        self.assertEqual(self.role.find(True).key_id, "K2")

    def test_a_service_that_is_away_leaves_what_there_is_until_it_ends(self):
        self.server.role("K1", "2027-01-15T09:00:00Z")
        self.role.find(False)
        self.server.texts.clear()
        self.clock.advance(58 * 60_000)
        self.assertEqual(self.role.find(False).key_id, "K1")
        self.clock.advance(3 * 60_000)
        self.assertRaisesRegex(OSError, "no role", self.role.find, False)

    def test_where_there_is_none_it_is_not_asked_all_the_time(self):
        self.assertRaisesRegex(OSError, "no role", self.role.find, False)
        asked = len(self.server.asked)
        self.assertRaisesRegex(OSError, "no role", self.role.find, False)
        self.assertEqual(len(self.server.asked), asked)
        disabled = dict(self.server.environment, AWS_EC2_METADATA_DISABLED="true")
        self.assertIsNone(MachineRole(Metadata(disabled), self.clock).find(True))


class KeyringTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.clock = FakeClock()
        self.path = self.at("grant.json")
        self.grants = Grants(self.path)
        self.own = OwnKeys({"AWS_ACCESS_KEY_ID": "OWN", "AWS_SECRET_ACCESS_KEY": "S"}, None)
        self.ring = Keyring([self.grants, self.own], self.clock.wall_ms)

    def grant(self, key_id, minutes):
        expires_at_ms = self.clock.wall_ms() + minutes * 60_000
        return {"keyId": key_id, "secret": "s", "sessionToken": "t", "expiresAtMs": expires_at_ms}

    def test_a_grant_comes_first_and_the_newest_of_several(self):
        self.write("grant.json", json.dumps(self.grant("FILE", 60)))
        self.assertEqual(self.ring.get().key_id, "FILE")
        self.grants.take(self.grant("LEASE", 90))
        self.assertEqual(self.ring.get().key_id, "LEASE")
        self.write("grant.json", json.dumps(self.grant("NEWER", 120)))
        self.assertEqual(self.ring.get().key_id, "NEWER")

    def test_when_the_grant_has_ended_the_machine_s_own_keys_do(self):
        self.grants.take(self.grant("LEASE", 1))
        self.write("grant.json", json.dumps(self.grant("FILE", 1)))
        self.clock.advance(60_000)
        self.assertEqual(self.ring.get().key_id, "OWN")

    def test_a_refused_one_is_passed_over_for_a_while(self):
        self.write("grant.json", json.dumps(self.grant("FILE", 60)))
        refused = self.ring.get()
        self.assertTrue(self.ring.refuse(refused))
        self.assertEqual(self.ring.get().key_id, "OWN")
        self.assertFalse(self.ring.refuse(self.ring.get()))
        self.clock.advance(61_000)
        self.assertEqual(self.ring.get().key_id, "FILE")

    def test_a_grant_file_that_is_none_is_told_when_there_is_nothing_else(self):
        self.write("grant.json", "{}")
        self.assertEqual(self.ring.get().key_id, "OWN")
        ring = Keyring([self.grants], self.clock.wall_ms)
        self.assertRaisesRegex(StoreError, "invalid grant file .*grant.json: keyId is missing", ring.get)

    def test_a_grant_file_may_be_sealed_with_the_key_of_the_attempt(self):
        with open(os.path.join(GOLDEN, "lease-with-grant.json"), "rb") as file:
            sealed = json.load(file)["grant"]
        self.write("grant.json", json.dumps(sealed))
        key = self.write("key", "07" * 32)
        with open(os.path.join(GOLDEN, "grant-of-a-session.json"), "rb") as file:
            grant = json.load(file)
        found = Grants(self.path, key).find(False)
        self.assertEqual((found.key_id, found.secret, found.token), (grant["keyId"], grant["secret"], grant["sessionToken"]))
        for wrong, words in ((None, "no key to open it"), (self.write("other", "08" * 32), "another key")):
            ring = Keyring([Grants(self.path, wrong)], self.clock.wall_ms)
            self.assertRaisesRegex(StoreError, "invalid grant file .*grant.json: .*" + words, ring.get)

    def test_without_anything_it_says_what_there_could_be(self):
        ring = Keyring([Grants(None), OwnKeys({}, None)], self.clock.wall_ms)
        self.assertRaisesRegex(StoreError, "no grant, key or role", ring.get)


class ProxyTest(unittest.TestCase):
    def asked_through(self, scheme, variables):
        """The first lines that a proxy hears."""
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        proxy = "http://us%%40er:pass@127.0.0.1:%d" % listener.getsockname()[1]
        with mock.patch.dict("os.environ", {name: value or proxy for name, value in variables.items()}):
            wire = Wire(scheme, "bucket.example:1")

        def ask():
            try:
                wire.send("GET", "/key", {}, NOTHING, 5.0)
            except Broken:
                pass

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        listener.settimeout(5)
        connection, _ = listener.accept()
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += connection.recv(65536)
        connection.close()
        thread.join()
        return heard.decode().split("\r\n")

    def test_plain_requests_name_the_whole_address(self):
        heard = self.asked_through("http", {"http_proxy": None, "no_proxy": ""})
        self.assertEqual(heard[0], "GET http://bucket.example:1/key HTTP/1.1")
        self.assertIn("Proxy-Authorization: Basic dXNAZXI6cGFzcw==", heard)

    def test_encrypted_ones_go_through_a_tunnel(self):
        heard = self.asked_through("https", {"https_proxy": None, "no_proxy": ""})
        self.assertTrue(heard[0].startswith("CONNECT bucket.example:1 "), heard)
        self.assertIn("Proxy-Authorization: Basic dXNAZXI6cGFzcw==", heard)

    def test_what_needs_no_proxy_is_asked_directly(self):
        with mock.patch.dict("os.environ", {"http_proxy": "http://127.0.0.1:1", "no_proxy": "bucket.example"}):
            self.assertIsNone(Wire("http", "bucket.example")._proxy)
