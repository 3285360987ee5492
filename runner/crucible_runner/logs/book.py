"""Numbers log lines, collects them into chunks and keeps the chunks on disk until they are in the store."""

import json.encoder
import os
import threading
from typing import Callable, Iterable, List, NamedTuple, Optional, Tuple

from ..clock import Clock
from ..documents import dump
from ..keys import parse_range, range_name
from ..paths import write_whole
from .redact import Redactor

CHUNK_BYTES = 256 * 1024
CHUNK_MS = 2_000
# Maximum size of lines that wait for the store; a flood of output during an outage must not fill the machine's disk.
WAITING_BYTES_MAX = 256 * 1024 * 1024
# Limit on memory for lines while the disk refuses writes too.
_MEMORY_BYTES_MAX = 4 * 1024 * 1024

# The C encoder; it escapes only the characters that JSON requires.
_quote = json.encoder.encode_basestring


class Chunk(NamedTuple):
    """Consecutive lines that wait for the store, in a file, or in memory when the disk refuses writes."""

    first: int
    last: int
    size: int
    path: Optional[str]
    body: bytes = b""
    """The content of a chunk without a file."""
    lost: int = 0
    """The number of lost lines that this chunk replaces."""

    def read(self) -> bytes:
        if self.path is None:
            return self.body
        with open(self.path, "rb") as file:
            return file.read()

    def discard(self) -> None:
        if self.path is not None:
            try:
                os.unlink(self.path)
            except OSError:
                pass


class LogBook:
    """All lines of an attempt in order. Callers pass redacted lines, or the book redacts them."""

    def __init__(self, folder: str, clock: Clock, waiting_bytes_max: int = WAITING_BYTES_MAX) -> None:
        self._folder = folder
        self._clock = clock
        self._waiting_bytes_max = waiting_bytes_max
        self._lock = threading.Lock()
        self._open: List[bytes] = []
        self._open_bytes = 0
        self._open_since_ms = 0
        self._waiting: List[Chunk] = []
        self._taken = 0
        # Lines logged before the first line number is known.
        self._early: Optional[List[Tuple[str, List[bytes]]]] = []
        self.lines = 0
        self.redactor = Redactor(())

    def redact(self, secrets: Iterable[str]) -> None:
        """Removes these values from all later lines."""
        self.redactor = Redactor(secrets)

    def begin_after(self, last: int) -> None:
        """Continues the numbering after `last`, which is not 0 when an earlier runner has died, and sends that runner's chunks on disk."""
        for name in sorted(os.listdir(self._folder)):
            found = parse_range(name)
            path = os.path.join(self._folder, name)
            if found is None:
                os.unlink(path)
                continue
            self._waiting.append(Chunk(found[0], found[1], os.path.getsize(path), path))
            last = max(last, found[1])
        early, self._early = self._early or [], None
        self.lines = last
        for stream, lines in early:
            self.add(stream, lines)

    def now_ms(self) -> int:
        """Returns the time of the monotonic clock."""
        return self._clock.mono_ms()

    def remark(self, text: str) -> None:
        """Adds a line of the runner itself."""
        self.add(
            "runner", [self.redactor.clean(line.encode("utf-8", "replace")) for line in text.splitlines()]
        )

    def add(self, stream: str, lines: List[bytes]) -> None:
        """Appends lines that are already redacted."""
        if not lines:
            return
        if self._early is not None:
            self._early.append((stream, lines))
            return
        now_ms = self._clock.wall_ms()
        form = '{"n":%d,"t":' + str(now_ms) + ',"s":"' + stream + '","m":%s}\n'
        with self._lock:
            if not self._open:
                self._open_since_ms = self._clock.mono_ms()
            for line in lines:
                self.lines += 1
                encoded = (form % (self.lines, _quote(line.decode("utf-8", "replace")))).encode("utf-8")
                self._open.append(encoded)
                self._open_bytes += len(encoded)
                if self._open_bytes >= CHUNK_BYTES:
                    self._close_chunk()

    def close_chunk(self, is_old_enough: Callable[[int], bool]) -> None:
        """Ends the current chunk when its age in milliseconds is sufficient."""
        with self._lock:
            if self._open and is_old_enough(self._clock.mono_ms() - self._open_since_ms):
                self._close_chunk()

    def take(self, count_max: int) -> List[Chunk]:
        """Returns the oldest waiting chunks, consecutive; they stay until `sent`."""
        with self._lock:
            self._taken = min(count_max, len(self._waiting))
            return self._waiting[: self._taken]

    def sent(self) -> None:
        """The taken chunks are in the store."""
        with self._lock:
            del self._waiting[: self._taken]
            self._taken = 0

    def lost(self, why: str) -> None:
        """The taken chunks cannot be read again."""
        with self._lock:
            self._replace(0, self._taken, why)
            self._taken = 0

    def _close_chunk(self) -> None:
        body = b"".join(self._open)
        first = self.lines - len(self._open) + 1
        chunk = Chunk(first, self.lines, len(body), None, body)
        path = os.path.join(self._folder, range_name(first, self.lines))
        try:
            # The write is not synced: the file must outlive this process, and after a power failure no process is left to send it.
            write_whole(path, body)
            chunk = chunk._replace(path=path, body=b"")
        except OSError:
            pass  # it waits in memory
        self._waiting.append(chunk)
        self._open = []
        self._open_bytes = 0
        self._open_since_ms = self._clock.mono_ms()
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Limits the waiting lines; one line reports how many were lost."""
        while True:
            in_memory = sum(chunk.size for chunk in self._waiting if chunk.path is None)
            in_all = sum(chunk.size for chunk in self._waiting)
            if in_memory <= _MEMORY_BYTES_MAX and in_all <= self._waiting_bytes_max:
                return
            rest = self._waiting[self._taken :]
            # A gap grows by the chunk after it. The newest chunk stays, because readers want to see where the log resumes.
            count = 2 if rest and rest[0].lost else 1
            if len(rest) <= count:
                return
            self._replace(self._taken, count, "they were written faster than the store accepted them")

    def _replace(self, at: int, count: int, why: str) -> None:
        dropped = self._waiting[at : at + count]
        first, last = dropped[0].first, dropped[-1].last
        lost = last - first + 1
        line = {
            "n": last,
            "t": self._clock.wall_ms(),
            "s": "gap",
            "m": "%d lines were lost: %s" % (lost, why),
            "lost": lost,
        }
        body = dump(line) + b"\n"
        self._waiting[at : at + count] = [Chunk(first, last, len(body), None, body, lost)]
        for chunk in dropped:
            chunk.discard()
