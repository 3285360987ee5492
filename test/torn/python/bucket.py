"""A bucket in memory that speaks as S3 does, where the runner's client would send its requests; and a line to it on which they
are lost, repeated, delayed and torn."""

import hashlib
from typing import Dict, List, NamedTuple, Optional
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import small_parts  # noqa: F401  (before anything that cuts)

from crucible_runner.store.s3.client import Answer, Ask, S3Error
from crucible_runner.store.s3.parts import PUT_HEADER
from crucible_runner.store.s3.wire import Broken
from crucible_runner.store.base import StoreError


class Object(NamedTuple):
    body: bytes
    mark: Optional[str]

    @property
    def tag(self) -> str:
        return '"%s"' % hashlib.md5(self.body).hexdigest()


class Request(NamedTuple):
    """As it was sent: the file that its body comes from may be another one when it arrives."""

    ask: Ask
    body: bytes

    def torn(self, dice) -> "Request":
        """Cut short, or with one bit wrong, as a store keeps it that was interrupted or has a bad disk."""
        at = dice.randrange(len(self.body))
        if dice.random() < 0.5:
            return self._replace(body=self.body[:at])
        return self._replace(body=self.body[:at] + bytes([self.body[at] ^ 1]) + self.body[at + 1 :])


class Bucket:
    def __init__(self) -> None:
        self.objects: Dict[str, Object] = {}
        self._uploads: Dict[str, dict] = {}

    def keys(self, prefix: str) -> List[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

    def obey(self, request: Request) -> Answer:
        """Raises `S3Error` for what is not among the answers that were asked for."""
        ask, query = request.ask, dict(request.ask.query)
        if ask.method == "PUT":
            answer = self._put_part(query, request) if "uploadId" in query else self._put(request)
        elif ask.method == "POST":
            answer = self._begin(ask) if "uploads" in query else self._complete(query["uploadId"], request)
        elif ask.method == "DELETE":
            (self._uploads if "uploadId" in query else self.objects).pop(query.get("uploadId", ask.key), None)
            answer = _answer(204)
        elif ask.key == "":
            answer = self._list(query["prefix"])
        else:
            answer = self._read(ask)
        if answer.status < 300 or answer.status in ask.accepts:
            return answer
        raise S3Error("refused", answer.status, answer.body.decode())

    def _put(self, request: Request) -> Answer:
        headers = request.ask.headers
        if headers.get("If-None-Match") == "*" and request.ask.key in self.objects:
            return _answer(412, b"PreconditionFailed")
        self.objects[request.ask.key] = Object(request.body, headers.get(PUT_HEADER))
        return _answer(200)

    def _begin(self, ask: Ask) -> Answer:
        name = "upload-%d" % (len(self._uploads) + 1)
        while name in self._uploads:
            name += "+"
        self._uploads[name] = {"key": ask.key, "mark": ask.headers[PUT_HEADER], "parts": {}}
        body = "<Result><UploadId>%s</UploadId></Result>" % escape(name)
        return _answer(200, body.encode(), {"x-amz-checksum-algorithm": "SHA256"})

    def _put_part(self, query: Dict[str, str], request: Request) -> Answer:
        upload = self._uploads.get(query["uploadId"])
        if upload is None:
            return _answer(404, b"NoSuchUpload")
        part = upload["parts"][int(query["partNumber"])] = Object(request.body, None)
        return _answer(200, b"", {"ETag": part.tag})

    def _complete(self, name: str, request: Request) -> Answer:
        upload = self._uploads.get(name)
        if upload is None:
            return _answer(404, b"NoSuchUpload")
        wanted = [(int(part[0].text), part[1].text) for part in ElementTree.fromstring(request.body)]
        if any(number not in upload["parts"] or upload["parts"][number].tag != tag for number, tag in wanted):
            return _answer(400, b"InvalidPart")
        body = b"".join(upload["parts"][number].body for number, _ in wanted)
        self.objects[upload["key"]] = Object(body, upload["mark"])
        del self._uploads[name]
        return _answer(200, b"<CompleteMultipartUploadResult/>")

    def _read(self, ask: Ask) -> Answer:
        found = self.objects.get(ask.key)
        if found is None:
            return _answer(404, b"NoSuchKey")
        if ask.headers.get("If-Match", found.tag) != found.tag:
            return _answer(412, b"PreconditionFailed")
        headers = {"ETag": found.tag, "Content-Length": str(len(found.body))}
        if found.mark is not None:
            headers[PUT_HEADER] = found.mark
        if "Range" not in ask.headers:
            return _answer(200, b"" if ask.method == "HEAD" else found.body, headers)
        first, last = ask.headers["Range"][len("bytes=") :].split("-")
        return _answer(206, found.body[int(first) : int(last) + 1], headers)

    def _list(self, prefix: str) -> Answer:
        """One page, as with the delimiter `/`."""
        rows, folders = [], set()
        for key in self.keys(prefix):
            folder, slash, _ = key[len(prefix) :].partition("/")
            if slash:
                folders.add(prefix + folder + slash)
            else:
                rows.append("<Contents><Key>%s</Key></Contents>" % quote(key))
        rows += ["<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>" % quote(name) for name in sorted(folders)]
        text = "<ListBucketResult><EncodingType>url</EncodingType>%s</ListBucketResult>" % "".join(rows)
        return _answer(200, text.encode())


def _answer(status: int, body: bytes = b"", headers: Optional[Dict[str, str]] = None) -> Answer:
    return Answer(status, headers or {}, body)


class Death(BaseException):
    """The machine is gone in the midst of what it did."""


class Line:
    """The runner's way to the bucket, in the place of `s3_client.Client`."""

    bucket = "torn"

    def __init__(self, bucket: Bucket, world) -> None:
        self._bucket = bucket
        self._world = world

    def ask(self, ask: Ask) -> Answer:
        request = self._sent(ask)
        fault = self._world.fault_of(ask)
        if fault == "lost":
            raise StoreError("the request was lost")
        if fault == "delayed":
            self._world.delay(request)
            raise StoreError("no answer came in time")
        if fault == "torn" and request.body:
            request = request.torn(self._world.dice)
            self._world.touch(ask.key)
        if fault == "repeated":
            # Obeyed, the answer lost, and sent again by the client itself.
            self._obey_unheard(request)
        answer = self._bucket.obey(request)
        self._world.obeyed(ask)
        if fault == "unheard":
            raise StoreError("the answer was lost")
        return answer

    def open(self, ask: Ask) -> "Reply":
        request = self._sent(ask)
        fault = self._world.fault_of(ask)
        if fault in ("lost", "unheard", "delayed"):
            raise StoreError("no answer came in time")
        return Reply(self._bucket.obey(request), self._world, is_cut=fault == "torn", is_flipped=fault == "repeated")

    def _sent(self, ask: Ask) -> Request:
        self._world.pass_time()
        body = b"".join(ask.part.blocks())
        if hashlib.sha256(body).digest() != ask.part.sha256:
            raise S3Error("the body is not what was signed", 400, "XAmzContentSHA256Mismatch")
        return Request(ask, body)

    def _obey_unheard(self, request: Request) -> None:
        try:
            self._bucket.obey(request)
        except S3Error:
            pass


class Reply:
    """The answer to a range: it may break off, or arrive damaged for once."""

    def __init__(self, answer: Answer, world, is_cut: bool, is_flipped: bool) -> None:
        self.status = answer.status
        self.length = len(answer.body)
        self._body = answer.body
        self._world = world
        self._is_cut = is_cut
        self._is_flipped = is_flipped and world.may_flip()

    def blocks(self):
        body = self._body
        if self._is_flipped and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        half = len(body) // 2
        if half:
            yield body[:half]
        if self._is_cut:
            raise Broken("the connection was cut", False)
        yield body[half:]

    def close(self) -> None:
        pass
