"""Downloads over HTTP: retries, resumes interrupted transfers, and fetches only content that has changed since the last time."""

import contextlib
import hashlib
import http.client
import os
import threading
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from typing import Callable, Dict, Iterator, NamedTuple, Optional, TypeVar

from ..amounts import in_bytes
from ..clock import Clock, in_words
from ..endings import Failed, is_disk_full
from ..http_requests import RETRYABLE_STATUS, USER_AGENT
from ..retries import RETRIES
from ..store.retry import GaveUp, Patience, Pauses, Remark
from .input_cache import Cached, InputCache

T = TypeVar("T")

_BLOCK_BYTES = 1024 * 1024
_SILENCE_SECONDS = 60.0
# An expensive machine does not wait longer than this for a server that delivers nothing.
_PATIENCE_MS = 5 * 60_000
# The log mentions failing tries that have lasted this long, and again after each such time.
_TELL_MS = 10_000
# A try that lasts is mentioned after the same time, and then more rarely.
_TELL_SLOW_MS = 60_000
# The server's content no longer matches the part that has arrived.
_CHANGED = (412, 416)


class Verdict(NamedTuple):
    """How to handle an error status of a server."""

    words: str
    is_worth_another_try: bool


class Origin(ABC):
    """One resource on a server."""

    name: str
    """The name as the user wrote it."""
    cache_name: str
    """Distinguishes it from every other cached input."""

    @abstractmethod
    def open(self, headers: Dict[str, str], timeout: float) -> http.client.HTTPResponse:
        """Requests the resource. Raises `HTTPError` for an answer without content, and `OSError` without an answer."""

    @abstractmethod
    def judge(self, error: urllib.error.HTTPError) -> Verdict:
        """Classifies an answer without content."""


class WebOrigin(Origin):
    def __init__(self, url: str) -> None:
        self.name = self.cache_name = url

    def open(self, headers: Dict[str, str], timeout: float) -> http.client.HTTPResponse:
        request = urllib.request.Request(self.name, headers=dict(headers, **{"User-Agent": USER_AGENT}))
        return urllib.request.urlopen(request, timeout=timeout)

    def judge(self, error: urllib.error.HTTPError) -> Verdict:
        words = "the server answered %d %s" % (error.code, error.reason)
        return Verdict(words, error.code in RETRYABLE_STATUS)


class _Partial:
    """The part that has arrived so far, in the file at `path`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.begin(None, None)

    def begin(self, etag: Optional[str], modified: Optional[str]) -> None:
        self.size = 0
        self.total: Optional[int] = None
        self.digest = hashlib.sha256()
        self.etag = etag
        self.modified = modified

    def in_words(self) -> str:
        if self.size == 0:
            return "nothing has arrived yet"
        whole = "" if self.total is None else " of %s" % in_bytes(self.total)
        return "%s%s have arrived" % (in_bytes(self.size), whole)

    def headers(self) -> Dict[str, str]:
        """Returns headers that request the rest, if the server can verify that the content is the same."""
        if self.size == 0 or not self.etag or self.etag.startswith("W/"):
            return {}
        return {"Range": "bytes=%d-" % self.size, "If-Match": self.etag}

    def receive(self, response: http.client.HTTPResponse, is_stopped: Callable[[], bool]) -> None:
        headers, begin = response.headers, self.size
        if response.status == 206:
            range_begin = "bytes %d-" % begin
            if headers.get("ETag") != self.etag or not headers.get("Content-Range", "").startswith(range_begin):
                self.begin(None, None)
                raise OSError("the server sent a part that was not requested")
        else:
            begin = 0
            self.begin(headers.get("ETag"), headers.get("Last-Modified"))
        length = headers.get("Content-Length")
        self.total = None if length is None else begin + int(length)
        with open(self.path, "r+b" if begin > 0 else "wb") as file:
            file.seek(begin)
            left = _BLOCK_BYTES if length is None else int(length)
            while left > 0:
                if is_stopped():
                    raise GaveUp("no time was left")
                # `read` would wait for the whole block.
                block = response.read1(min(left, _BLOCK_BYTES))
                if not block:
                    break
                file.write(block)
                self.digest.update(block)
                self.size += len(block)
                left -= 0 if length is None else len(block)
        if length is not None and left > 0:
            raise OSError("the connection ended after %d of %s bytes" % (self.size - begin, length))


def _words_of(error: Exception) -> str:
    cause = getattr(error, "reason", error)
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


class Downloads:
    """Fetches the content of origins. Raises `Failed` for content that is unavailable now (`input`) or can never be had (`no-input`), and
    `GaveUp` when time is over."""

    def __init__(self, cache: InputCache, clock: Clock, patience: Patience, remark: Remark) -> None:
        self._cache = cache
        self._clock = clock
        self._patience = patience
        self._remark = remark

    def fetch(self, origin: Origin, target: str) -> None:
        """Puts the content at `target`, whose folder exists."""
        cached = self._cache.find(origin.cache_name)
        partial = self._download(origin, target + ".part", cached)
        if partial is None and cached is not None:
            if self._cache.copy(cached, target):
                return
            partial = self._download(origin, target + ".part", None)
        if partial is None:
            raise self._failed(origin, "the server sent no content")
        os.replace(partial.path, target)
        if partial.etag or partial.modified:
            told = Cached(origin.cache_name, partial.digest.hexdigest(), partial.etag, partial.modified)
            self._cache.keep(told, target)

    def read(self, origin: Origin) -> bytes:
        """Reads a whole document into memory."""

        def read() -> bytes:
            with origin.open({}, _SILENCE_SECONDS) as response:
                return response.read()

        return self._persist(origin, read, _Partial(""))

    def _download(self, origin: Origin, path: str, cached: Optional[Cached]) -> Optional[_Partial]:
        """Returns None when the cached copy is still valid."""
        partial = _Partial(path)
        known = {}
        if cached is not None and cached.etag:
            known["If-None-Match"] = cached.etag
        if cached is not None and cached.modified:
            known["If-Modified-Since"] = cached.modified

        def download() -> Optional[_Partial]:
            try:
                response = origin.open(partial.headers() or known, _SILENCE_SECONDS)
            except urllib.error.HTTPError as error:
                if error.code == 304:
                    return None
                if error.code in _CHANGED and partial.size > 0:
                    partial.begin(None, None)
                    raise OSError("it has changed in the meantime") from error
                raise
            with response:
                partial.receive(response, self._patience.is_stopped)
            return partial

        return self._persist(origin, download, partial)

    def _persist(self, origin: Origin, action: Callable[[], T], arrived: _Partial) -> T:
        """Retries until the action succeeds, or until nothing more has arrived for too long."""
        try:
            return self._retry(origin, action, arrived)
        finally:
            RETRIES.over(action)

    def _retry(self, origin: Origin, action: Callable[[], T], arrived: _Partial) -> T:
        pauses = Pauses()
        began_ms = self._clock.mono_ms()
        tell_ms = began_ms + _TELL_MS
        most = arrived.size
        while True:
            try:
                with self._told(origin, arrived):
                    return action()
            except urllib.error.HTTPError as error:
                with error:
                    words, is_worth_another_try = origin.judge(error)
                if not is_worth_another_try:
                    raise self._failed(origin, words, "no-input") from error
            except http.client.InvalidURL as error:
                raise self._failed(origin, str(error), "no-input") from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                if is_disk_full(error):
                    raise
                words = _words_of(error)
            if arrived.size > most:
                most = arrived.size
                began_ms = self._clock.mono_ms()
                pauses.reset()
            RETRIES.failed(action, "the input %s cannot be fetched: %s" % (origin.name, words))
            now_ms = self._clock.mono_ms()
            if now_ms >= tell_ms:
                tell_ms = now_ms + _TELL_MS
                left = in_words(max(0, began_ms + _PATIENCE_MS - now_ms))
                self._remark("the input %s cannot be fetched now; trying for %s more: %s" % (origin.name, left, words))
            pauses.wait(self._patience.is_hopeless)
            if self._patience.is_hopeless():
                raise GaveUp(words)
            if self._clock.mono_ms() >= began_ms + _PATIENCE_MS:
                raise self._failed(origin, words)

    @contextlib.contextmanager
    def _told(self, origin: Origin, arrived: _Partial) -> Iterator[None]:
        """Mentions in the log how much has arrived, as long as the block lasts."""
        over = threading.Event()

        def tell() -> None:
            pause_ms = _TELL_MS
            while not over.wait(pause_ms / 1000):
                self._remark("the input %s is being fetched: %s" % (origin.name, arrived.in_words()))
                pause_ms = _TELL_SLOW_MS

        threading.Thread(target=tell, daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _failed(self, origin: Origin, words: str, reason: str = "input") -> Failed:
        return Failed(reason, "the input %s cannot be fetched: %s" % (origin.name, words))
