"""Requests to one bucket: signed, retried, and sent to the bucket's actual region."""

import http.client
import random
import time
from email.utils import parsedate_to_datetime
from typing import Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar
from xml.etree import ElementTree

from ...clock import Clock
from ...http_requests import RETRYABLE_STATUS, USER_AGENT
from ..base import Part, StoreError, StoreRefused, part_of
from .credentials import Keyring
from .place import StorePlace, base_of
from .sigv4 import Credentials, Request, signed_headers
from .wire import SILENCE_SECONDS, Broken, Reply, Wire

T = TypeVar("T")

_REGION_DEFAULT = "us-east-1"
# Brief failures end within a few tries; the caller must handle longer ones.
_TRIES = 4
_FIRST_PAUSE_SECONDS = 0.1
_SLOW_DOWN_FACTOR = 5
_RENEWALS_MAX = 3
_MOVES_MAX = 2

_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId")
# Error codes that justify a retry, whatever the status. The middle two mean damage on the way, or a file that is being written and is about
# to be read again.
_PASSING = ("RequestTimeout", "InternalError", "BadDigest", "XAmzContentSHA256Mismatch", "OperationAborted")
# Error codes of keys that this store can never hold.
NEVER = ("KeyTooLongError", "InvalidURI", "NotImplemented")
_REMEDIES = {
    "AccessDenied": "allow the identity that runs jobs to read, put, list and delete in this bucket",
    "SignatureDoesNotMatch": "correct the secret key",
    "InvalidAccessKeyId": "correct the access key",
    "ExpiredToken": "renew the credentials",
    "RequestTimeTooSkewed": "set the clock of this machine",
    "PermanentRedirect": "write the region of the bucket into the store's URL: s3://BUCKET?region=REGION",
    "NoSuchBucket": "correct the store's URL",
}

NOTHING = part_of(b"")


class S3Error(StoreError):
    """The store has answered with an error."""

    def __init__(self, words: str, status: int, code: str) -> None:
        super().__init__(words)
        self.status = status
        self.code = code


class S3Refused(S3Error, StoreRefused):
    """The store has answered that this machine may not do it."""


class Ask(NamedTuple):
    """A request for an object of the bucket, or for the bucket itself when the key is empty."""

    method: str
    key: str
    query: Sequence[Tuple[str, str]] = ()
    headers: Mapping[str, str] = {}
    part: Part = NOTHING
    accepts: Tuple[int, ...] = ()
    """Error statuses that the caller accepts as answers."""
    silence: float = SILENCE_SECONDS


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Client:
    def __init__(self, place: StorePlace, region: Optional[str], keyring: Keyring, clock: Clock) -> None:
        self.bucket = place.bucket
        self._endpoint = place.endpoint
        self._region = place.region or region or _REGION_DEFAULT
        self._keyring = keyring
        self._clock = clock
        self._skew_ms = 0
        self.on_date: Callable[[int], None] = lambda _: None
        """Receives the date of each answer (wall clock)."""
        self._base = base_of(place.bucket, self._region, place.endpoint)
        self._wire = Wire(self._base.scheme, self._base.host)

    def now_ms(self) -> int:
        """The wall clock, corrected by the store's clock when the two are far apart."""
        return self._clock.wall_ms() + self._skew_ms

    def ask(self, ask: Ask) -> Answer:
        """Returns the complete answer to the last of several tries; an earlier try may have taken effect."""
        return self._try(ask, lambda reply: Answer(reply.status, reply.headers, reply.read()))

    def open(self, ask: Ask) -> Reply:
        """Returns the answer with its body still unread."""
        return self._try(ask, lambda reply: reply)

    def _try(self, ask: Ask, take: Callable[[Reply], T]) -> T:
        tries = renewals = moves = 0
        while True:
            credentials = self._keyring.get()
            try:
                reply = self._send(ask, credentials)
                if reply.status < 300 or reply.status in ask.accepts:
                    return take(reply)
                error, told = self._error(ask, reply, credentials)
            except Broken as broken:
                if broken.was_idle:
                    continue  # a new connection replaces it; connections of the same age are closed
                error, told = StoreError(self._words(ask, str(broken))), {}
            if isinstance(error, S3Error):
                if moves < _MOVES_MAX and self._has_moved(error.status, told):
                    moves += 1
                    continue
                if renewals < _RENEWALS_MAX and self._is_renewed(ask, error, told, credentials):
                    renewals += 1
                    continue
                if error.code in NEVER and ask.method == "PUT":
                    raise ValueError(str(error))
                if not (error.status in RETRYABLE_STATUS or error.code in _PASSING):
                    raise error
            tries += 1
            if tries >= _TRIES:
                raise error
            _pause(tries, told.get("Code") in ("SlowDown", "ServiceUnavailable"))

    def _send(self, ask: Ask, credentials: Credentials) -> Reply:
        path = "%s/%s" % (self._base.path, ask.key)
        headers = dict(ask.headers)
        request = Request(ask.method, self._base.host, path, ask.query, headers, ask.part.sha256.hex())
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now_ms() / 1000))
        signed = signed_headers(request, credentials, self._region, stamp)
        signed["User-Agent"] = USER_AGENT
        reply = self._wire.send(ask.method, request.target, signed, ask.part, ask.silence)
        date_ms = instant_ms(reply.headers.get("Date", ""))
        # An answer from a cache has an age, and an old date.
        if date_ms is not None and reply.headers.get("Age") is None:
            self.on_date(date_ms)
        return reply

    def _error(self, ask: Ask, reply: Reply, credentials: Credentials) -> Tuple[S3Error, Dict[str, str]]:
        told = fields_of(reply.read())
        for field, header in (("Region", "x-amz-bucket-region"), ("Date", "Date")):
            told[field] = reply.headers.get(header) or told.get(field, "")
        code = told.get("Code", "")
        words = " ".join(filter(None, (str(reply.status), code, told.get("Message"))))
        if reply.status in (400, 401, 403):
            words += "; it was asked with %s" % credentials.origin
        if code in _REMEDIES:
            words += ": " + _REMEDIES[code]
        kind = S3Refused if reply.status in (401, 403) or code in _EXPIRED else S3Error
        return kind(self._words(ask, words), reply.status, code), told

    def _words(self, ask: Ask, why: str) -> str:
        at = " at %s" % self._endpoint if self._endpoint else ""
        return "%s s3://%s/%s%s: %s" % (ask.method, self.bucket, ask.key, at, why)

    def _has_moved(self, status: int, told: Mapping[str, str]) -> bool:
        """Returns True when the store reports that the bucket is in another region: later requests go there."""
        region = told.get("Region")
        if status not in (301, 307, 400) or not region or region == self._region:
            return False
        base = base_of(self.bucket, region, self._endpoint)
        if base != self._base:
            self._wire = Wire(base.scheme, base.host)
        self._base, self._region = base, region
        return True

    def _is_renewed(
        self, ask: Ask, error: S3Error, told: Mapping[str, str], credentials: Credentials
    ) -> bool:
        """Returns True when the request can be signed better than before."""
        if error.code == "RequestTimeTooSkewed":
            theirs_ms = instant_ms(told["Date"])
            if theirs_ms is None:
                return False
            self._skew_ms = theirs_ms - self._clock.wall_ms()
            return True
        # The answer to HEAD has no body, and so gives no reason.
        is_mute = ask.method == "HEAD" and error.status in (400, 403)
        return (error.code in _EXPIRED or is_mute) and self._keyring.refuse(credentials)


def instant_ms(date: str) -> Optional[int]:
    try:
        return int(parsedate_to_datetime(date).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None


def fields_of(body: bytes) -> Dict[str, str]:
    """Returns the fields of an S3 error; empty for another document."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return {}
    if local_name(root) != "Error":
        return {}
    return {local_name(child): child.text for child in root if child.text}


def local_name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _pause(tries: int, is_asked_to: bool) -> None:
    """Exponential backoff with jitter, so that clients that failed together retry at different times."""
    seconds = _FIRST_PAUSE_SECONDS * 2**tries * (_SLOW_DOWN_FACTOR if is_asked_to else 1)
    time.sleep(seconds * random.uniform(0.5, 1.0))
