import io
import unittest
from unittest import mock
from urllib.error import HTTPError

from support import FakeClock, FolderTest

from crucible_runner.endings import Failed
from crucible_runner.s3_access import Access, find_access
from crucible_runner.s3_input import Bucket
from crucible_runner.sigv4 import Credentials, Get, signed_headers

# The published examples: "Signature Calculations for the Authorization Header", Amazon S3 API Reference.
EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None, "")
HOST = "examplebucket.s3.amazonaws.com"
STAMP = "20130524T000000Z"


class SignatureTest(unittest.TestCase):
    def signature(self, get, credentials=EXAMPLE):
        headers = signed_headers(get, credentials, "us-east-1", STAMP)
        return headers["Authorization"].rpartition("=")[2]

    def test_the_published_example_of_an_object(self):
        get = Get(HOST, "/test.txt", (), {"Range": "bytes=0-9"})
        headers = signed_headers(get, EXAMPLE, "us-east-1", STAMP)
        self.assertEqual(
            headers["Authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        )

    def test_the_published_example_of_a_listing(self):
        get = Get(HOST, "/", (("prefix", "J"), ("max-keys", "2")), {})
        self.assertEqual(get.target, "/?max-keys=2&prefix=J")
        self.assertEqual(
            self.signature(get), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        )

    def test_the_published_example_of_a_parameter_without_a_value(self):
        self.assertEqual(
            self.signature(Get(HOST, "/", (("lifecycle", ""),), {})),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        )

    def test_a_session_token_is_signed_too(self):
        get = Get(HOST, "/", (), {})
        session = EXAMPLE._replace(token="token")
        self.assertEqual(signed_headers(get, session, "r", STAMP)["x-amz-security-token"], "token")
        self.assertNotEqual(self.signature(get), self.signature(get, session))

    def test_names_are_sent_as_they_are_signed(self):
        get = Get(HOST, "/a b/ü+~(1).txt", (("prefix", "a b/+"),), {})
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
        self.assertRaisesRegex(Failed, r"\.aws/config cannot be understood", self.find)

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
