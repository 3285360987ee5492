"""Cache of downloaded inputs, shared by all machines of this user. It never causes a failure: when it has a problem, the input is
downloaded."""

import hashlib
import json
import os
import uuid
from typing import List, NamedTuple, Optional, Tuple

from ..checkpoint.staging import copy_file

# Maximum total size of the cache on disk; the least recently used input is evicted first.
_BYTES_MAX = 20 * 1024**3
_BLOCK_BYTES = 1024 * 1024


class Cached(NamedTuple):
    source: str
    sha256: str
    etag: Optional[str]
    modified: Optional[str]


def default_folder(environment) -> Optional[str]:
    """Returns the folder of the cache by the XDG convention; None when the user has no home."""
    home = environment.get("HOME")
    base = environment.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if home else None)
    return os.path.join(base, "crucible", "inputs") if base else None


class InputCache:
    """Two files for each input: its content, and the server's answer. The content is verified at each use."""

    def __init__(self, folder: Optional[str], bytes_max: int = _BYTES_MAX) -> None:
        self._folder = folder
        self._bytes_max = bytes_max

    def find(self, source: str) -> Optional[Cached]:
        if self._folder is None:
            return None
        try:
            with open(self._path(source) + ".json", encoding="utf-8") as file:
                told = json.load(file)
            cached = Cached(told["source"], told["sha256"], told["etag"], told["modified"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return cached if cached.source == source and os.path.exists(self._path(source)) else None

    def copy(self, cached: Cached, target: str) -> bool:
        """Copies the content to `target`; returns False when the content has changed."""
        path = self._path(cached.source)
        try:
            copy_file(path, target)
            os.utime(path)
        except OSError:
            return False
        digest = hashlib.sha256()
        with open(target, "rb") as file:
            for block in iter(lambda: file.read(_BLOCK_BYTES), b""):
                digest.update(block)
        return digest.hexdigest() == cached.sha256

    def keep(self, cached: Cached, source_path: str) -> None:
        size = os.path.getsize(source_path)
        if self._folder is None or size > self._bytes_max:
            return
        path = self._path(cached.source)
        part = "%s.%s.part" % (path, uuid.uuid4().hex)
        try:
            os.makedirs(self._folder, exist_ok=True)
            self._make_room(size)
            copy_file(source_path, part)
            # Another machine may do the same; content and answer may then come from both, which the digest detects.
            os.replace(part, path)
            with open(part, "w", encoding="utf-8") as file:
                json.dump(cached._asdict(), file)
            os.replace(part, path + ".json")
        except OSError:
            _remove(part)

    def _make_room(self, size: int) -> None:
        entries: List[Tuple[float, int, str]] = []
        with os.scandir(self._folder) as found:
            for entry in found:
                if not entry.name.endswith(".json"):
                    status = entry.stat()
                    entries.append((status.st_mtime, status.st_size, entry.path))
        total = sum(entry[1] for entry in entries)
        for _, entry_size, path in sorted(entries):
            if total + size <= self._bytes_max:
                return
            total -= entry_size
            _remove(path)
            _remove(path + ".json")

    def _path(self, source: str) -> str:
        return os.path.join(str(self._folder), hashlib.sha256(source.encode("utf-8")).hexdigest())


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
