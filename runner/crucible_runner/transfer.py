"""Moves files between the machine and the store: several parts at a time, with digests, never a whole file in memory."""

import hashlib
import os
import threading
from typing import Callable, Iterable, Iterator, List, Optional

from .documents import PART_BYTES
from .retry import GaveUp
from .store import Download, Store, Upload

# Parts on their way at the same time; each is held in memory, so this bounds the runner's size.
THREADS = 4


class Corrupt(Exception):
    """What is in the store is not what its manifest says."""


class Changed(Exception):
    """The file changed while it was read."""


IsOver = Callable[[], bool]


def run_parallel(tasks: Iterable[Callable[[], None]], is_over: IsOver) -> None:
    """Runs the tasks, several at a time and begun in order. The first error ends it and is raised; `GaveUp` when `is_over`."""
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
                    raise GaveUp("there was no time left")
                task()
                task = take()
        except BaseException as error:  # handed to whoever waits
            errors.append(error)

    threads = [threading.Thread(target=work, name="transfer", daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class FileUp:
    """One file on its way up: parts in any order, then `entry` tells what was sent."""

    def __init__(self, store: Store, key: str, path: str, size: int) -> None:
        self._store = store
        self._key = key
        self._path = path
        self.size = size
        count = -(-size // PART_BYTES)
        self._digests: List[bytes] = [b""] * count
        self._left = max(1, count)
        self.sent_bytes = 0
        self._lock = threading.Lock()
        self._upload: Optional[Upload] = None
        self._descriptor = -1

    def tasks(self) -> Iterator[Callable[[], None]]:
        for index in range(max(1, len(self._digests))):
            yield lambda index=index: self._send(index)

    def _send(self, index: int) -> None:
        with self._lock:
            if self._upload is None:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
                self._upload = self._store.upload(self._key, self.size)
            upload = self._upload
        data = b""
        if self._digests:
            offset = index * PART_BYTES
            data = os.pread(self._descriptor, min(PART_BYTES, self.size - offset), offset)
            if len(data) != min(PART_BYTES, self.size - offset):
                raise Changed("%s is shorter than it was" % self._path)
            self._digests[index] = hashlib.sha256(data).digest()
            upload.put_part(offset, data)
        with self._lock:
            self._left -= 1
            self.sent_bytes += len(data)
            is_last = self._left == 0
        if is_last:
            upload.commit()
            self.close()

    def close(self) -> None:
        """Gives up what is not committed."""
        if self._upload is not None:
            self._upload.abort()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def parts(self) -> List[str]:
        return [digest.hex() for digest in self._digests]

    def digest(self) -> str:
        return hashlib.sha256(b"".join(self._digests)).hexdigest()


def upload_files(files: List[FileUp], is_over: IsOver) -> None:
    try:
        run_parallel((task for file in files for task in file.tasks()), is_over)
    finally:
        for file in files:
            file.close()


class FileDown:
    """One file of a manifest on its way down; each part is checked before it is written."""

    def __init__(self, store: Store, key: str, path: str, entry: dict) -> None:
        self._store = store
        self._key = key
        self._path = path
        self._entry = entry
        self._left = max(1, len(entry["parts"]))
        self._lock = threading.Lock()
        self._download: Optional[Download] = None
        self._descriptor = -1

    def tasks(self) -> Iterator[Callable[[], None]]:
        digests = b"".join(bytes.fromhex(part) for part in self._entry["parts"])
        if hashlib.sha256(digests).hexdigest() != self._entry["digest"]:
            raise Corrupt("the digests of %s do not belong together" % self._entry["path"])
        for index in range(self._left):
            yield lambda index=index: self._fetch(index)

    def _fetch(self, index: int) -> None:
        with self._lock:
            download = self._download or self._open()
        parts = self._entry["parts"]
        if parts:
            offset = index * PART_BYTES
            data = download.read(offset, PART_BYTES)
            if hashlib.sha256(data).hexdigest() != parts[index]:
                raise Corrupt("part %d of %s has a wrong digest" % (index + 1, self._entry["path"]))
            write_at(self._descriptor, data, offset)
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.fchmod(self._descriptor, self._entry["mode"] & 0o777 | 0o600)
                self.close()

    def _open(self) -> Download:
        download = self._store.download(self._key)
        if download is None:
            raise Corrupt("%s is missing in the store" % self._entry["path"])
        self._download = download
        if download.size != self._entry["sizeBytes"]:
            raise Corrupt("%s has a wrong size" % self._entry["path"])
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


def download_files(files: List[FileDown], is_over: IsOver) -> None:
    try:
        run_parallel((task for file in files for task in file.tasks()), is_over)
    finally:
        for file in files:
            file.close()


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while len(view) > 0:
        written = os.pwrite(descriptor, view, offset)
        view = view[written:]
        offset += written


def upload_whole(store: Store, key: str, path: str, is_over: IsOver) -> str:
    """Uploads one file in order. Returns the SHA-256 of its content."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        upload = store.upload(key, size)
        try:
            for offset in range(0, size, PART_BYTES):
                if is_over():
                    raise GaveUp("there was no time left")
                data = file.read(min(PART_BYTES, size - offset))
                if len(data) != min(PART_BYTES, size - offset):
                    raise Changed("%s is shorter than it was" % path)
                digest.update(data)
                upload.put_part(offset, data)
            upload.commit()
        finally:
            upload.abort()
    return digest.hexdigest()


def download_whole(store: Store, key: str, path: str, is_over: IsOver) -> Optional[str]:
    """Downloads one object in order. Returns the SHA-256 of its content, or None when there is no such object."""
    download = store.download(key)
    if download is None:
        return None
    digest = hashlib.sha256()
    try:
        with open(path, "wb") as file:
            for offset in range(0, download.size, PART_BYTES):
                if is_over():
                    raise GaveUp("there was no time left")
                data = download.read(offset, PART_BYTES)
                digest.update(data)
                file.write(data)
    finally:
        download.close()
    return digest.hexdigest()
