"""Fetches the order's inputs to where the workload looks for them."""

import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from typing import Callable, Dict, NamedTuple, Optional
from urllib.parse import unquote, urlsplit

from .clock import Clock, in_words
from .endings import Failed, is_disk_full
from .input_cache import Cached, InputCache
from .retry import GaveUp, Patience, Pauses, Remark

_BLOCK_BYTES = 1024 * 1024
_SILENCE_SECONDS = 60.0
# A server that is away for longer than this is not coming back in time for an expensive machine that waits for it.
_PATIENCE_MS = 5 * 60_000
_WORTH_ANOTHER_TRY = (408, 425, 429, 500, 502, 503, 504)


class _Answer(NamedTuple):
    """None of it when the copy that we have is still good."""

    sha256: str
    etag: Optional[str]
    modified: Optional[str]


class Inputs:
    def __init__(self, cache: InputCache, clock: Clock, remark: Remark, patience: Patience) -> None:
        self._cache = cache
        self._clock = clock
        self._remark = remark
        self._patience = patience

    def fetch(self, source: str, target: str) -> None:
        """Puts a copy of the source at `target`. Raises `Failed('input')` when it cannot be had."""
        fetchers: Dict[str, Callable[[str, str], None]] = {
            "file": self._copy,
            "http": self._download,
            "https": self._download,
        }
        fetcher = fetchers.get(urlsplit(source).scheme)
        if fetcher is None:
            known = ", ".join(sorted(fetchers))
            raise Failed(
                "input", "the input %s cannot be fetched: its URL must begin with one of %s" % (source, known)
            )
        began_ms = self._clock.mono_ms()
        if os.path.isdir(target):
            raise Failed(
                "input", "the input %s cannot be put at %s: the code has a folder there" % (source, target)
            )
        os.makedirs(os.path.dirname(target), exist_ok=True)
        fetcher(source, target)
        self._remark("input %s is here (%s)" % (source, in_words(self._clock.mono_ms() - began_ms)))

    def _copy(self, source: str, target: str) -> None:
        path = unquote(urlsplit(source).path)
        try:
            if os.path.isdir(path):
                shutil.copytree(path, target, symlinks=True)
            else:
                shutil.copy(path, target)
        except (OSError, shutil.Error) as error:
            if is_disk_full(error):
                raise
            raise Failed("input", "the input %s cannot be copied: %s" % (source, error)) from error

    def _download(self, source: str, target: str) -> None:
        part = target + ".part"
        cached = self._cache.find(source)
        answer = self._ask(source, part, cached)
        if answer is None and cached is not None:
            if self._cache.copy(cached, target):
                return
            answer = self._ask(source, part, None)
        if answer is None:
            raise Failed("input", "the input %s cannot be fetched: the server gave no content" % source)
        os.replace(part, target)
        if answer.etag or answer.modified:
            self._cache.keep(Cached(source, answer.sha256, answer.etag, answer.modified), target)

    def _ask(self, source: str, part: str, cached: Optional[Cached]) -> Optional[_Answer]:
        """Asks until there is an answer: content, now in `part`, or None for "what you have is still good"."""
        pauses = Pauses()
        until_ms = self._clock.mono_ms() + _PATIENCE_MS
        while True:
            try:
                return self._ask_once(source, part, cached)
            except urllib.error.HTTPError as error:
                words = "the server says %d %s" % (error.code, error.reason)
                if error.code not in _WORTH_ANOTHER_TRY:
                    raise Failed("input", "the input %s cannot be fetched: %s" % (source, words)) from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                if is_disk_full(error):
                    raise
                words = str(getattr(error, "reason", error)) or type(error).__name__
            pauses.wait(self._patience.is_hopeless)
            if self._patience.is_hopeless():
                raise GaveUp(words)
            if self._clock.mono_ms() >= until_ms:
                raise Failed("input", "the input %s cannot be fetched: %s" % (source, words))

    def _ask_once(self, source: str, part: str, cached: Optional[Cached]) -> Optional[_Answer]:
        request = urllib.request.Request(source, headers={"User-Agent": "crucible-runner"})
        if cached is not None and cached.etag:
            request.add_header("If-None-Match", cached.etag)
        if cached is not None and cached.modified:
            request.add_header("If-Modified-Since", cached.modified)
        try:
            response = urllib.request.urlopen(request, timeout=_SILENCE_SECONDS)
        except urllib.error.HTTPError as error:
            if error.code == 304:
                return None
            raise
        digest = hashlib.sha256()
        size = 0
        with response, open(part, "wb") as file:
            while True:
                if self._patience.is_stopped():
                    raise GaveUp("there was no time left")
                block = response.read(_BLOCK_BYTES)
                if not block:
                    break
                digest.update(block)
                file.write(block)
                size += len(block)
            length = response.headers.get("Content-Length")
            if length is not None and size != int(length):
                raise OSError("the connection ended after %d of %s bytes" % (size, length))
            return _Answer(
                digest.hexdigest(), response.headers.get("ETag"), response.headers.get("Last-Modified")
            )
