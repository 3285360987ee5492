"""Inputs in S3: one object, or everything under a prefix."""

import http.client
import os
import time
import urllib.error
import urllib.request
from typing import Callable, Dict, List, Optional, Sequence, Tuple
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from ..clock import Clock
from ..documents import inner_path
from ..endings import Failed
from ..http_requests import RETRYABLE_STATUS, USER_AGENT
from ..shapes import DocumentError
from ..store.s3.access import Access
from ..store.s3.place import base_of
from ..store.s3.sigv4 import Request, signed_headers
from ..store.transfer import run_parallel
from .download import Downloads, Origin, Verdict

_ERROR_BYTES_MAX = 64 * 1024
# Number of objects under a prefix to transfer in parallel.
_TRANSFERS = 8


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A signature is valid for one host only."""

    def redirect_request(self, *_: object) -> None:
        return None


class Bucket:
    """A bucket with its access: in the given region, or in its actual one."""

    def __init__(self, name: str, access: Access, clock: Clock) -> None:
        self.name = name
        self._access = access
        self._region = access.region
        self._is_region_sure = False
        self._clock = clock
        self._opener = urllib.request.build_opener(_NoRedirect)

    def open(
        self, key: str, query: Sequence[Tuple[str, str]], headers: Dict[str, str], timeout: float
    ) -> http.client.HTTPResponse:
        base = base_of(self.name, self._region, self._access.endpoint)
        get = Request("GET", base.host, "%s/%s" % (base.path, key), query, headers)
        if self._access.credentials is not None:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock.wall_ms() / 1000))
            headers = signed_headers(get, self._access.credentials, self._region, stamp)
        url = "%s://%s%s" % (base.scheme, base.host, get.target)
        request = urllib.request.Request(url, headers=dict(headers, **{"User-Agent": USER_AGENT}))
        return self._opener.open(request, timeout=timeout)

    def name_of(self, key: str) -> str:
        """Returns a name that identifies the object, whichever region the bucket turns out to be in."""
        return "s3://%s/%s at %s" % (self.name, key, self._access.endpoint or "AWS")

    def judge(self, error: urllib.error.HTTPError, key: str) -> Verdict:
        told = _read_error(error)
        region = error.headers.get("x-amz-bucket-region") or told.get("Region")
        if error.code in (301, 307, 400) and region and region != self._region and not self._is_region_sure:
            self._region, self._is_region_sure = region, True
            return Verdict("the bucket is in the region %s" % region, True)
        code = told.get("Code", "")
        words = self._advice(error.code, code, key)
        if not words:
            said = " ".join(filter(None, (code, told.get("Message")))) or error.reason
            words = "the server answered %d %s%s" % (error.code, said, self._remedy(error.code, code))
        return Verdict(words, error.code in RETRYABLE_STATUS or code == "RequestTimeout")

    def _advice(self, status: int, code: str, key: str) -> str:
        """Returns a clearer explanation than the server's error."""
        if status != 404 or code not in ("", "NoSuchKey", "NoSuchBucket"):
            return ""
        if code == "NoSuchBucket":
            return "the bucket %s does not exist at %s: correct the name" % (self.name, self._access.endpoint or "S3")
        return (
            "the bucket %s has no object %r: correct the name; a URL that ends with a slash means everything under that prefix"
            % (self.name, key)
        )

    def _remedy(self, status: int, code: str) -> str:
        if code == "RequestTimeTooSkewed":
            return "; set the clock of this machine"
        if status in (301, 307):
            return "; set AWS_REGION in the job's env to the region of the bucket %s" % self.name
        if status in (400, 401, 403, 404):
            return (
                "; the request was %s. Give the job AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY as secrets, of a user who may"
                " read and list the bucket %s" % (self._access.words, self.name)
            )
        return ""


class _Object(Origin):
    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self.name = "s3://%s/%s" % (bucket.name, key)
        self.cache_name = bucket.name_of(key)

    def open(self, headers: Dict[str, str], timeout: float) -> http.client.HTTPResponse:
        return self._bucket.open(self._key, (), headers, timeout)

    def judge(self, error: urllib.error.HTTPError) -> Verdict:
        return self._bucket.judge(error, self._key)


class _Listing(Origin):
    """One page of the objects under a prefix."""

    def __init__(self, bucket: Bucket, prefix: str, token: Optional[str]) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self.name = self.cache_name = "s3://%s/%s" % (bucket.name, prefix)
        self._query = [("list-type", "2"), ("prefix", prefix), ("encoding-type", "url")]
        if token is not None:
            self._query.append(("continuation-token", token))

    def open(self, headers: Dict[str, str], timeout: float) -> http.client.HTTPResponse:
        return self._bucket.open("", self._query, headers, timeout)

    def judge(self, error: urllib.error.HTTPError) -> Verdict:
        return self._bucket.judge(error, self._prefix)


def fetch_s3(source: str, target: str, bucket_of: Callable[[str], Bucket], downloads: Downloads) -> None:
    """Puts an object at `target`; for a prefix, which ends with a slash, puts everything under it into the folder `target`."""
    name, _, key = source[len("s3://") :].partition("/")
    bucket = bucket_of(name)
    if not key.endswith("/"):
        downloads.fetch(_Object(bucket, key), target)
        return
    files = _inner_files(source, key, list_objects(bucket, key, downloads))
    os.makedirs(target)
    for path in files:
        os.makedirs(os.path.dirname(os.path.join(target, path)), exist_ok=True)
    run_parallel(
        (
            lambda path=path: downloads.fetch(_Object(bucket, key + path), os.path.join(target, path))
            for path in files
        ),
        lambda: False,
        _TRANSFERS,
    )


def list_objects(bucket: Bucket, prefix: str, downloads: Downloads) -> List[str]:
    """The keys under a prefix."""
    keys: List[str] = []
    token: Optional[str] = None
    while True:
        page = ElementTree.fromstring(downloads.read(_Listing(bucket, prefix, token)))
        found = {child.tag.rpartition("}")[2]: child for child in page}
        is_encoded = "EncodingType" in found and found["EncodingType"].text == "url"
        for child in page.iter():
            if child.tag.rpartition("}")[2] == "Key" and child.text:
                keys.append(unquote_plus(child.text) if is_encoded else child.text)
        token = found["NextContinuationToken"].text if "NextContinuationToken" in found else None
        if not token:
            return keys


def _inner_files(source: str, prefix: str, keys: List[str]) -> List[str]:
    """Returns the paths below the prefix. Consoles show keys that end with a slash as empty folders."""
    paths = [key[len(prefix) :] for key in keys if not key.endswith("/")]
    if not paths:
        raise Failed("no-input", "the input %s cannot be fetched: no object has this prefix" % source)
    for path in paths:
        try:
            inner_path(path, "the rest of its key")
        except DocumentError as error:
            words = "the input %s cannot be fetched: its object %r has no place in a folder: %s"
            raise Failed("no-input", words % (source, prefix + path, error)) from error
    return paths


def _read_error(error: urllib.error.HTTPError) -> Dict[str, str]:
    """Returns the fields of an S3 error; empty when the body has none."""
    try:
        root = ElementTree.fromstring(error.read(_ERROR_BYTES_MAX))
    except (ElementTree.ParseError, OSError, http.client.HTTPException):
        return {}
    return {child.tag: child.text for child in root if child.text}
