"""Uploads log chunks into the store, and merges small ones so that a long job does not leave a million files."""

import threading
from typing import Callable, List, NamedTuple

from ..keys import Keys
from ..store.base import Store
from ..store.retry import Pauses, Trouble
from .book import CHUNK_BYTES, CHUNK_MS, Chunk, LogBook

# Number of chunks that are merged into one file, which also limits the memory for merging.
MERGE_COUNT = 32
_MERGE_BYTES = MERGE_COUNT * CHUNK_BYTES
_LOOK_SECONDS = 0.2


class _Sent(NamedTuple):
    first: int
    last: int
    body: bytes


class Shipper:
    """A thread that sends the log book's chunks in order."""

    def __init__(self, book: LogBook, store: Store, keys: Keys, trouble: Trouble) -> None:
        self._book = book
        self._store = store
        self._keys = keys
        self._trouble = trouble
        self._sent: List[_Sent] = []
        self._is_ending = threading.Event()
        self._is_giving_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self, is_over: Callable[[], bool]) -> None:
        """Sends all available lines while time is left."""
        self._is_ending.set()
        while self._thread.is_alive() and not is_over():
            self._thread.join(0.05)
        self._is_giving_up.set()

    def _run(self) -> None:
        pauses = Pauses()
        while not self._is_giving_up.is_set():
            is_last = self._is_ending.is_set()
            self._book.close_chunk(lambda age_ms: is_last or age_ms >= CHUNK_MS)
            chunks = self._book.take(MERGE_COUNT)
            if chunks:
                try:
                    self._send(chunks)
                    pauses.reset()
                    self._trouble.passed()
                except Exception as error:  # whatever the error is: the lines must be sent again
                    self._trouble.happened(error)
                    pauses.wait(self._is_giving_up.is_set)
            elif is_last:
                return
            else:
                self._is_ending.wait(_LOOK_SECONDS)

    def _send(self, chunks: List[Chunk]) -> None:
        try:
            body = b"".join(chunk.read() for chunk in chunks)
        except OSError as error:
            self._book.lost("they could not be read back (%s)" % error)
            return
        sent = _Sent(chunks[0].first, chunks[-1].last, body)
        self._store.put(self._keys.log_chunk(sent.first, sent.last), body)
        self._book.sent()
        for chunk in chunks:
            chunk.discard()
        self._sent.append(sent)
        if len(self._sent) >= MERGE_COUNT or sum(len(each.body) for each in self._sent) >= _MERGE_BYTES:
            self._merge()

    def _merge(self) -> None:
        # The list is cleared first: if the store fails now, the small files stay.
        merged, self._sent = self._sent, []
        if len(merged) > 1:
            body = b"".join(each.body for each in merged)
            self._store.put(self._keys.log_chunk(merged[0].first, merged[-1].last), body)
            for each in merged:
                self._store.delete(self._keys.log_chunk(each.first, each.last))
