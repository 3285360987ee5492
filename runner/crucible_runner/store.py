"""The object store as the runner sees it: whole objects under keys with `/`, and one atomic put-if-absent."""

from abc import ABC, abstractmethod
from typing import Callable, Dict, List, Optional
from urllib.parse import urlsplit


class StoreError(Exception):
    """The store did not do it. Always worth trying again: what can never work is a `ValueError`."""


class Upload(ABC):
    """An object of known size on its way up. Parts may come from several threads, in any order, each once."""

    @abstractmethod
    def put_part(self, offset: int, data: bytes) -> None:
        """Adds the bytes at `offset`."""

    @abstractmethod
    def commit(self) -> None:
        """Makes the object visible whole, replacing what was there. Only when all parts are put."""

    @abstractmethod
    def abort(self) -> None:
        """Leaves nothing behind. Never raises."""


class Download(ABC):
    """An object on its way down, read from several threads."""

    size: int

    @abstractmethod
    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes, or fewer at the end of the object."""

    @abstractmethod
    def close(self) -> None:
        """Never raises."""


class Store(ABC):
    """All methods raise `StoreError` when the store does not answer, whatever the cause."""

    @abstractmethod
    def get(self, key: str) -> Optional[bytes]:
        """The whole object, or None when there is none."""

    @abstractmethod
    def put(self, key: str, body: bytes) -> None:
        """Puts the object whole, replacing what was there; a reader sees the old or the new, never a part."""

    @abstractmethod
    def put_if_absent(self, key: str, body: bytes) -> bool:
        """Puts the object unless the key is taken; False, and nothing changed, when it is."""

    @abstractmethod
    def upload(self, key: str, size: int) -> Upload:
        """Begins to put an object of any size without holding it in memory."""

    @abstractmethod
    def download(self, key: str) -> Optional[Download]:
        """Opens an object of any size for reading in parts, or None when there is none."""

    @abstractmethod
    def list(self, prefix: str) -> List[str]:
        """The keys directly under a folder-like prefix (one that ends in `/`), in order."""

    @abstractmethod
    def folders(self, prefix: str) -> List[str]:
        """The names of the folders directly under a prefix that ends in `/`, in order, without the slash."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Removes the object; absent is success."""


def _open_folder(url: str) -> Store:
    from .file_store import FileStore, path_of_url

    return FileStore(path_of_url(url))


_SCHEMES: Dict[str, Callable[[str], Store]] = {"file": _open_folder}


def open_store(url: str) -> Store:
    """The store that a URL names. Raises `ValueError` that says what is wrong with the URL."""
    opener = _SCHEMES.get(urlsplit(url).scheme)
    if opener is None:
        known = ", ".join(scheme + "://" for scheme in sorted(_SCHEMES))
        raise ValueError("Cannot open the store %r: its URL must begin with one of: %s" % (url, known))
    return opener(url)
