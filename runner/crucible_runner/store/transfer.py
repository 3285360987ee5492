"""Moves files between the machine and the store: several parts at a time, with digests, never a whole part in memory."""

import hashlib
import os
import threading
import time
from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Type, Union

from ..documents import PART_BYTES
from ..paths import write_at
from ..retries import RETRIES
from .base import Download, Part, Stale, Store, StoreError, StoreRefused, Upload
from .holes import Reader, sha256_of_zeros
from .retry import GaveUp, Pauses

# The permission bits that are restored: no program becomes another user through a checkpoint.
MODE = 0o777

# A part is retried for this long; after that a newer checkpoint may be worth more.
_PATIENCE_SECONDS = 120.0


class Corrupt(Exception):
    """The content in the store does not match its manifest."""


class Changed(Exception):
    """The file changed while it was read."""


IsOver = Callable[[], bool]
Tell = Callable[[str, int], None]
"""Receives the current operation on a file, and the number of finished bytes."""


def _tell_no_one(_doing: str, _done_bytes: int) -> None:
    pass


def run_parallel(tasks: Iterable[Callable[[], None]], is_over: IsOver, threads: int) -> None:
    """Runs the tasks, several at a time, started in order. The first error ends the run and is raised; `GaveUp` when `is_over`."""
    waiting: Iterator[Callable[[], None]] = iter(tasks)
    lock = threading.Lock()
    errors: List[BaseException] = []

    def take() -> Optional[Callable[[], None]]:
        with lock:
            return None if errors else next(waiting, None)

    def work() -> None:
        try:
            task = take()
            while task is not None:
                if is_over():
                    raise GaveUp("no time was left")
                task()
                task = take()
        except BaseException as error:  # passed to the waiting thread
            errors.append(error)

    workers = [threading.Thread(target=work, name="transfer", daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]


def _persist_part(
    action: Callable[[], None], is_over: IsOver, patience: Optional[float] = None, final: Type[StoreError] = Stale
) -> None:
    """Retries one part after a failure that is not `final`, so that finished parts of a big file are not moved again."""
    pauses = Pauses()
    until = time.monotonic() + (_PATIENCE_SECONDS if patience is None else patience)
    try:
        while True:
            try:
                return action()
            except (Stale, final):
                raise
            except StoreError as error:
                if time.monotonic() >= until:
                    raise
                RETRIES.failed(action, "a part of a file cannot be moved: %s" % error)
            pauses.wait(is_over)
            if is_over():
                raise GaveUp("no time was left")
    finally:
        RETRIES.over(action)


class FileUp:
    """The upload of one file: parts in any order, then `parts` and `digest` describe the sent content."""

    def __init__(self, store: Store, key: str, path: str, size: int, patience: Optional[float] = None):
        self._store = store
        self._key = key
        self._path = path
        self.size = size
        self._patience = patience
        self._part_bytes = store.part_bytes(size)
        self._digests: List[bytes] = [b""] * -(-size // PART_BYTES)
        self._count = max(1, -(-size // self._part_bytes))
        self._left = self._count
        self.sent_bytes = 0
        self.is_refused = False
        """The store can never hold its key."""
        self.tell: Tell = _tell_no_one
        self._lock = threading.Lock()
        self._upload: Optional[Upload] = None
        self._descriptor = -1

    @property
    def transfers(self) -> int:
        return self._store.transfers

    def tasks(self, is_over: IsOver) -> Iterator[Callable[[], None]]:
        for index in range(self._count):
            yield lambda index=index: self._send(index, is_over)

    def _send(self, index: int, is_over: IsOver) -> None:
        offset = index * self._part_bytes
        length = min(self._part_bytes, self.size - offset)
        try:
            _persist_part(lambda: self._put(offset, length), is_over, self._patience)
            with self._lock:
                self._left -= 1
                self.sent_bytes += length
                is_last = self._left == 0
                self.tell("uploading", self.sent_bytes)
            if is_last:
                _persist_part(self._begun().commit, is_over, self._patience)
                self.close()
        except ValueError:
            self.is_refused = True
            raise

    def _begun(self) -> Upload:
        with self._lock:
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
                self._reader = Reader(self._descriptor)
            if self._upload is None:
                self._upload = self._store.upload(self._key, self.size)
            return self._upload

    def _put(self, offset: int, length: int) -> None:
        upload = self._begun()
        if length > 0:
            part = self._digested(offset, length)
            upload.put_part(offset, part)

    def _digested(self, offset: int, length: int) -> Part:
        """Reads the part once for its digests; sending reads it again, from the system's cache."""
        whole = hashlib.sha256()
        for begin in range(offset, offset + length, PART_BYTES):
            piece_bytes = min(PART_BYTES, offset + length - begin)
            has_own_whole = self._part_bytes > PART_BYTES
            if not has_own_whole and self._reader.is_hole(begin, begin + piece_bytes):
                self._digests[begin // PART_BYTES] = sha256_of_zeros(piece_bytes)
                continue
            piece = hashlib.sha256()
            for block in self._blocks(begin, piece_bytes):
                piece.update(block)
                if has_own_whole:
                    whole.update(block)
            self._digests[begin // PART_BYTES] = piece.digest()
        digest = whole.digest() if self._part_bytes > PART_BYTES else self._digests[offset // PART_BYTES]
        return Part(length, digest, lambda: self._blocks(offset, length))

    def _blocks(self, offset: int, length: int) -> Iterator[bytes]:
        end = offset + length
        for block in self._reader.blocks(offset, end):
            yield block
            offset += len(block)
        if offset < end:
            raise Changed("%s became shorter" % self._path)

    def close(self) -> None:
        """Aborts an upload that is not committed."""
        if self._upload is not None:
            self._upload.abort()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def parts(self) -> List[str]:
        return [digest.hex() for digest in self._digests]

    def digest(self) -> str:
        return hashlib.sha256(b"".join(self._digests)).hexdigest()


class FileDown:
    """The download of one file of a manifest; each part is checked against its digest."""

    def __init__(self, store: Store, key: str, path: str, entry: dict) -> None:
        self._store = store
        self._key = key
        self._path = path
        self._entry = entry
        self._left = max(1, len(entry["parts"]))
        self._lock = threading.Lock()
        self._download: Optional[Download] = None
        self._descriptor = -1

    @property
    def transfers(self) -> int:
        return self._store.transfers

    def tasks(self, is_over: IsOver) -> Iterator[Callable[[], None]]:
        digests = b"".join(bytes.fromhex(part) for part in self._entry["parts"])
        if hashlib.sha256(digests).hexdigest() != self._entry["digest"]:
            raise Corrupt("the digests of %s do not match" % self._entry["path"])
        for index in range(self._left):
            yield lambda index=index: self._fetch(index, is_over)

    def _fetch(self, index: int, is_over: IsOver) -> None:
        _persist_part(lambda: self._fetch_part(index), is_over)
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.fchmod(self._descriptor, self._entry["mode"] & MODE)
                self.close()

    def _fetch_part(self, index: int) -> None:
        with self._lock:
            download = self._download or self._open()
        parts = self._entry["parts"]
        if not parts or self._receive(download, index) == parts[index]:
            return
        # Tried once more, because the damage may have happened in transit.
        if self._receive(download, index) != parts[index]:
            raise Corrupt("part %d of %s has a wrong digest" % (index + 1, self._entry["path"]))

    def _receive(self, download: Download, index: int) -> str:
        offset = index * PART_BYTES
        digest = hashlib.sha256()
        for block in download.blocks(offset, PART_BYTES):
            digest.update(block)
            write_at(self._descriptor, block, offset)
            offset += len(block)
        return digest.hexdigest()

    def _open(self) -> Download:
        download = self._store.download(self._key)
        if download is None:
            raise Corrupt("%s is missing in the store" % self._entry["path"])
        self._download = download
        if download.size != self._entry["sizeBytes"]:
            raise Corrupt("%s has the wrong size" % self._entry["path"])
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return download

    def close(self) -> None:
        if self._download is not None:
            self._download.close()
            self._download = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def transfer_files(files: Sequence[Union[FileUp, FileDown]], is_over: IsOver) -> None:
    threads = max((file.transfers for file in files), default=0)
    try:
        run_parallel((task for file in files for task in file.tasks(is_over)), is_over, threads)
    finally:
        for file in files:
            file.close()


def upload_whole(store: Store, key: str, path: str, is_over: IsOver, tell: Tell = _tell_no_one) -> str:
    """Uploads one file. Returns the SHA-256 of its content."""
    before = os.stat(path)
    digest = _sha256_of(path, is_over, tell)
    # The caller has other files, and retries this one after those.
    file = FileUp(store, key, path, before.st_size, patience=0)
    file.tell = tell
    transfer_files([file], is_over)
    after = os.stat(path)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise Changed("%s was written while it was uploaded" % path)
    return digest


def download_whole(store: Store, key: str, path: str, is_over: IsOver) -> Optional[str]:
    """Downloads one object. Returns the SHA-256 of its content, or None when the object does not exist."""
    download = store.download(key)
    if download is None:
        return None
    with open(path, "wb") as file:

        def fetch(offset: int) -> None:
            for block in download.blocks(offset, PART_BYTES):
                write_at(file.fileno(), block, offset)
                offset += len(block)

        try:
            run_parallel(
                (
                    lambda offset=offset: _persist_part(lambda: fetch(offset), is_over, final=StoreRefused)
                    for offset in range(0, download.size, PART_BYTES)
                ),
                is_over,
                store.transfers,
            )
        finally:
            download.close()
    return _sha256_of(path, is_over)


def _sha256_of(path: str, is_over: IsOver, tell: Tell = _tell_no_one) -> str:
    digest = hashlib.sha256()
    done_bytes = 0
    with open(path, "rb", buffering=0) as file:
        for block in Reader(file.fileno()).blocks(0, os.fstat(file.fileno()).st_size):
            if is_over():
                raise GaveUp("no time was left")
            digest.update(block)
            done_bytes += len(block)
            tell("hashing", done_bytes)
    return digest.hexdigest()
