"""Getting an image: what docker says, what that means, and how long it is worth waiting."""

import base64
import json
import os
import stat
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

from support import FakeClock, FolderTest

from crucible_runner.image.ecr import Login, region_of
from crucible_runner.endings import Failed
from crucible_runner.image.pulling import Puller, Wanted, registry_of

ECR_IMAGE = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/train:1"
DENIED = (
    "unauthorized: authentication required",
    "pull access denied for x, repository does not exist or may require 'docker login': denied: requested access",
    "Head \"https://ghcr.io/v2/x/manifests/1\": denied",
    "failed to resolve reference: unexpected status from HEAD request: 403 Forbidden",
    "no basic auth credentials",
    "login attempt to https://123456789012.dkr.ecr.eu-west-1.amazonaws.com/v2/ failed with status: 400 Bad Request",
)
ABSENT = (
    "manifest for x:2 not found: manifest unknown: manifest unknown",
    "failed to resolve reference \"docker.io/library/x:2\": docker.io/library/x:2: not found",
    "no matching manifest for linux/arm64/v8 in the manifest list entries",
    "invalid reference format",
)
PASSING = (
    "Get \"https://registry-1.docker.io/v2/\": dial tcp: lookup registry-1.docker.io: i/o timeout",
    "received unexpected HTTP status: 503 Service Unavailable",
    "toomanyrequests: You have reached your pull rate limit",
    "net/http: TLS handshake timeout",
    "connection reset by peer",
)


class DockerTest(FolderTest):
    """With a docker that behaves as configured."""

    def setUp(self):
        super().setUp()
        self.clock, self.remarks = FakeClock(), []
        self.docker = self.write("docker", "")
        os.chmod(self.docker, stat.S_IRWXU)

    def says(self, words, code=1, before=""):
        """A docker that has no image, and says this when it is to pull one."""
        script = '#!/bin/sh\n[ "$1" = image ] && exit 1\necho "$@" >> %s\n%s\n[ "$1" = pull ] || exit 0\ncat <<"END" >&2\n%s\nEND\nexit %d\n'
        self.write("docker", script % (self.at("calls"), before, words, code))

    def pull(self, image="x:2", login=None, is_over=lambda: False, patience_ms=0, environment=os.environ):
        puller = Puller(self.docker, self.at("login"), self.clock, self.remarks.append, is_over)
        puller.pull(Wanted(image, login), environment, patience_ms)

    def reason(self, words, **more):
        self.says("Error response from daemon: " + words)
        with self.assertRaises(Failed) as caught:
            self.pull(**more)
        return caught.exception.reason


class PullTest(DockerTest):
    def test_what_is_refused_what_is_not_there_and_what_may_pass_are_told_apart(self):
        for reason, cases in (("image-login", DENIED), ("image", ABSENT), ("registry", PASSING)):
            for words in cases:
                with self.subTest(words):
                    self.assertEqual(self.reason(words), reason)

    def test_the_name_of_an_image_says_nothing(self):
        self.assertEqual(self.reason("i/o timeout for access-denied:403", image="access-denied:403"), "registry")

    def test_a_registry_that_talks_without_end_fills_no_memory(self):
        self.says("error", before="head -c 20000000 /dev/zero | tr '\\0' x; printf ' denied'")
        with self.assertRaises(Failed) as caught:
            self.pull()
        self.assertLess(len(str(caught.exception)), 5_000)

    def test_a_full_disk_is_one(self):
        words = "failed to register layer: write /usr/lib/libcudnn.so: no space left on device"
        self.assertEqual(self.reason(words), "disk-full")

    def test_it_goes_on_as_long_as_layers_come(self):
        # Each try brings one layer more, and takes nearly as long as all of them may fail for.
        count = self.write("count", "")
        one_more = 'if [ "$1" = pull ]; then echo >> %s; printf "%%012x: Pull complete\\n" $(wc -l < %s); fi'
        self.says("connection reset by peer", before=one_more % (count, count))
        tries = 0

        def is_over():
            nonlocal tries
            done = len(self.read("count"))
            self.clock.advance((done - tries) * 50_000)
            tries = done
            return tries >= 4

        self.pull(is_over=is_over, patience_ms=60_000)
        self.assertEqual(tries, 4)
        self.assertEqual(sum("trying again" in each for each in self.remarks), 1)

    def test_it_ends_when_the_attempt_must_stop(self):
        self.says("", before="exec sleep 600")
        began = threading.Event()
        threading.Timer(0.3, began.set).start()
        self.pull(is_over=began.is_set)

    def test_the_password_goes_through_a_pipe_and_is_forgotten(self):
        told = 'if [ "$1" = login ]; then cat > "$DOCKER_CONFIG/config.json"; fi; cat "$DOCKER_CONFIG/config.json" > %s' % self.at("seen")
        self.says("", code=0, before=told)
        self.pull(image="registry.example:5000/x:2", login=Login("robot", "let me in"))
        self.assertEqual(self.read("calls"), "login --username robot --password-stdin registry.example:5000\npull registry.example:5000/x:2\n")
        self.assertEqual(self.read("seen"), "let me in")
        self.assertFalse(os.path.exists(self.at("login")))

    def test_registries_are_told_by_their_hosts(self):
        for image, registry in (("x", None), ("team/x", None), ("ghcr.io/x", "ghcr.io"), ("localhost/x", "localhost")):
            self.assertEqual(registry_of(image), registry)
        self.assertEqual(region_of(registry_of(ECR_IMAGE)), "eu-west-1")
        self.assertIsNone(region_of("dkr.ecr.eu-west-1.amazonaws.com.example"))


class Ecr(BaseHTTPRequestHandler):
    """Gives a token to anyone who has signed for ECR."""

    def do_POST(self):
        self.server.asked.append(dict(self.headers))
        status, told = self.server.answer
        body = json.dumps(told).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class EcrTest(DockerTest):
    def setUp(self):
        super().setUp()
        self.server = HTTPServer(("127.0.0.1", 0), Ecr)
        self.server.asked = []
        token = base64.b64encode(b"AWS:the token").decode("ascii")
        self.server.answer = (200, {"authorizationData": [{"authorizationToken": token, "expiresAt": 1.8e9}]})
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.environment = {
            "PATH": os.environ["PATH"],
            "AWS_ENDPOINT_URL": "http://127.0.0.1:%d" % self.server.server_port,
            "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
        }

    def test_the_token_of_the_machine_is_the_login(self):
        self.says("", code=0, before='if [ "$1" = login ]; then cat > %s; fi' % self.at("typed"))
        self.pull(image=ECR_IMAGE, environment=self.environment)
        self.assertEqual(self.read("typed"), "the token")
        self.assertIn("login --username AWS --password-stdin 123456789012.dkr.ecr.eu-west-1", self.read("calls"))
        [asked] = self.server.asked
        self.assertRegex(asked["Authorization"], r"Credential=AKIA/\d{8}/eu-west-1/ecr/aws4_request")

    def test_a_role_without_the_permission_is_refused_and_trouble_of_the_service_passes(self):
        for status, kind, reason in ((400, "AccessDeniedException", "image-login"), (500, "ServerException", "registry"), (400, "ThrottlingException", "registry")):
            self.server.answer = (status, {"__type": kind, "message": "no"})
            self.assertEqual(self.reason("", image=ECR_IMAGE, environment=self.environment), reason)

    def test_a_machine_without_a_role_is_refused(self):
        del self.environment["AWS_ACCESS_KEY_ID"], self.environment["AWS_SECRET_ACCESS_KEY"]
        self.assertEqual(self.reason("", image=ECR_IMAGE, environment=self.environment), "image-login")


if __name__ == "__main__":
    unittest.main()
