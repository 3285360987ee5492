"""Multipart transfers of large objects to and from S3."""

import base64
import threading
import time
import uuid
from typing import Dict, Iterator, Optional, Tuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from ..base import Download, Part, Stale, StoreError, Upload, part_of
from .client import NEVER, Answer, Ask, Client, S3Error, fields_of, local_name
from .wire import Broken

# Identifies the writer of an object, so that a put with a lost answer is recognized as one's own.
PUT_HEADER = "x-amz-meta-crucible-put"
_CHECKSUM = "x-amz-checksum-sha256"
# Time limit for servers that need minutes to assemble a very large object from its parts.
_COMPLETE_SECONDS = 300.0
_COMPLETE_TRIES = 4
_COMPLETE_PAUSE_SECONDS = 0.5
_RESUMES_MAX = 5
_ENDED = ("NoSuchUpload", "InvalidPart", "NoSuchKey")
# Status codes of servers that do not support checksums of parts.
_UNKNOWN = (400, 501)


def was_put_by(standing: Answer, mark: str) -> bool:
    return standing.headers.get(PUT_HEADER) == mark


class S3Upload(Upload):
    """An object of one part is put at once when it is committed; others are multipart uploads."""

    def __init__(self, client: Client, key: str, size: int, part_bytes: int) -> None:
        self._client = client
        self._key = key
        self._size = size
        self._part_bytes = part_bytes
        self._mark = uuid.uuid4().hex
        self._whole: Optional[Part] = part_of(b"") if size == 0 else None
        self._id: Optional[str] = None
        self._has_checksums = False
        self._parts: Dict[int, Tuple[str, bytes]] = {}
        self._is_done = False
        self._lock = threading.Lock()

    def put_part(self, offset: int, part: Part) -> None:
        if self._size <= self._part_bytes:
            self._whole = part
            return
        upload = self._begun()
        number = offset // self._part_bytes + 1
        query = (("partNumber", str(number)), ("uploadId", upload))
        headers = {_CHECKSUM: _base64(part.sha256)} if self._has_checksums else {}
        try:
            answer = self._client.ask(Ask("PUT", self._key, query, headers, part))
        except StoreError as error:
            # A server that refuses a part closes the connection at once, and its reason is often lost.
            if self._is_gone(error):
                raise Stale("the upload of %s no longer exists" % self._key) from error
            raise
        with self._lock:
            self._parts[number] = (answer.headers.get("ETag") or "", part.sha256)

    def commit(self) -> None:
        if self._is_done:
            return
        if self._whole is not None:
            self._client.ask(Ask("PUT", self._key, part=self._whole))
        else:
            self._complete()
        self._is_done = True

    def abort(self) -> None:
        upload, self._id = self._id, None
        if upload is None or self._is_done:
            return
        try:
            self._client.ask(Ask("DELETE", self._key, (("uploadId", upload),), accepts=(404,)))
        except StoreError:
            pass  # the control plane ends stale uploads

    def _begun(self) -> str:
        with self._lock:
            if self._id is None:
                self._id = self._create()
            return self._id

    def _create(self) -> str:
        """Requests checksums of parts; on a server without them, the signatures detect damage. Raises `ValueError` for a key that the store
        can never hold."""
        headers = {PUT_HEADER: self._mark}
        wanted = dict(headers, **{"x-amz-checksum-algorithm": "SHA256"})
        try:
            answer = self._client.ask(Ask("POST", self._key, (("uploads", ""),), wanted))
        except S3Error as error:
            if error.status not in _UNKNOWN:
                raise
            try:
                answer = self._client.ask(Ask("POST", self._key, (("uploads", ""),), headers))
            except S3Error as plain:
                if plain.code in NEVER:
                    raise ValueError(str(plain)) from plain
                raise
        self._has_checksums = answer.headers.get("x-amz-checksum-algorithm", "").upper() == "SHA256"
        try:
            told = {local_name(child): child.text for child in ElementTree.fromstring(answer.body)}
        except ElementTree.ParseError:
            told = {}
        upload = told.get("UploadId")
        if not upload:
            raise StoreError("the store began no upload of %s: %r" % (self._key, answer.body[:200]))
        return upload

    def _complete(self) -> None:
        body = part_of(self._list_of_parts())
        query = (("uploadId", self._id or ""),)
        headers = {"x-amz-mp-object-size": str(self._size)} if self._has_checksums else {}
        ask = Ask("POST", self._key, query, headers, body, (), _COMPLETE_SECONDS)
        for tries in range(_COMPLETE_TRIES):
            time.sleep(tries * _COMPLETE_PAUSE_SECONDS)
            try:
                # The server sends the status before the work is done: an error is in the body.
                code = fields_of(self._client.ask(ask).body).get("Code")
            except S3Error as error:
                if error.code not in _ENDED:
                    raise
                code = error.code
            if code is None or code in _ENDED:
                # The commit may have succeeded now, earlier with a lost answer, or never: the object itself shows which.
                standing = self._client.ask(Ask("HEAD", self._key, accepts=(404,)))
                if standing.status != 404 and was_put_by(standing, self._mark):
                    return
                raise Stale("the upload of %s no longer exists" % self._key)
        raise StoreError("completing the upload of %s failed: %s" % (self._key, code))

    def _list_of_parts(self) -> bytes:
        rows = []
        for number, (tag, sha256) in sorted(self._parts.items()):
            checksum = "<ChecksumSHA256>%s</ChecksumSHA256>" % _base64(sha256) if self._has_checksums else ""
            row = "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag>%s</Part>"
            rows.append(row % (number, escape(tag), checksum))
        return ("<CompleteMultipartUpload>%s</CompleteMultipartUpload>" % "".join(rows)).encode("utf-8")

    def _is_gone(self, error: StoreError) -> bool:
        if not isinstance(error, S3Error):
            try:
                self._client.ask(Ask("GET", self._key, (("max-parts", "1"), ("uploadId", self._id or ""))))
                return False
            except S3Error as reason:
                error = reason
            except StoreError:
                return False
        return error.code == "NoSuchUpload"


class S3Download(Download):
    """Each part is requested by its range, on condition that the object is unchanged."""

    def __init__(self, client: Client, key: str, head: Answer) -> None:
        self._client = client
        self._key = key
        self._tag = head.headers.get("ETag")
        self.size = int(head.headers.get("Content-Length") or 0)

    def blocks(self, offset: int, length: int) -> Iterator[bytes]:
        end = min(offset + length, self.size)
        resumes = 0
        while offset < end:
            begin = offset
            try:
                for block in self._open(offset, end).blocks():
                    yield block
                    offset += len(block)
            except Broken as error:
                resumes = 0 if offset > begin else resumes + 1
                if resumes > _RESUMES_MAX:
                    raise StoreError("reading %s: %s" % (self._key, error)) from error

    def close(self) -> None:
        pass

    def _open(self, offset: int, end: int):
        headers = {"Range": "bytes=%d-%d" % (offset, end - 1)}
        if self._tag:
            headers["If-Match"] = self._tag
        reply = self._client.open(Ask("GET", self._key, headers=headers, accepts=(404, 412)))
        is_right = reply.status == 206 or (reply.status == 200 and (offset, end) == (0, self.size))
        if is_right and reply.length == end - offset:
            return reply
        reply.close()
        if reply.status in (404, 412):
            raise Stale("%s was replaced or deleted while it was read" % self._key)
        raise StoreError("the store sent a different part of %s than requested" % self._key)


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode("ascii")
