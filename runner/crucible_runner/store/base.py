"""The object store as the runner sees it: whole objects under keys with `/`, and one atomic put-if-absent."""

import hashlib
from abc import ABC, abstractmethod
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional

from ..documents import PART_BYTES


# Objects are moved in pieces of this size: it is what a part on its way takes of the runner's memory.
BLOCK_BYTES = 256 * 1024


class StoreError(Exception):
    """The store did not do it. Always worth trying again: what can never work is a `ValueError`."""


class Stale(StoreError):
    """What was begun cannot be gone on with: the upload is gone, or the object is another one. Begin again."""


class Part(NamedTuple):
    """Bytes on their way up. They can be read more than once, as they may have to be sent more than once."""

    size: int
    sha256: bytes
    blocks: Callable[[], Iterable[bytes]]


def part_of(body: bytes) -> Part:
    return Part(len(body), hashlib.sha256(body).digest(), lambda: (body,))


class Upload(ABC):
    """An object of known size on its way up. Parts may come from several threads, in any order."""

    @abstractmethod
    def put_part(self, offset: int, part: Part) -> None:
        """Adds the part that begins at `offset`, a multiple of the store's `part_bytes`. May be repeated after an error."""

    @abstractmethod
    def commit(self) -> None:
        """Makes the object visible whole, replacing what was there. Only when all parts are put. May be repeated after an
        error."""

    @abstractmethod
    def abort(self) -> None:
        """Leaves nothing behind. Never raises."""


class Download(ABC):
    """An object on its way down, read from several threads."""

    size: int

    @abstractmethod
    def blocks(self, offset: int, length: int) -> Iterator[bytes]:
        """Exactly `length` bytes in pieces of at most `BLOCK_BYTES`, or fewer at the end of the object."""

    @abstractmethod
    def close(self) -> None:
        """Never raises."""


class Store(ABC):
    """All methods raise `StoreError` when the store does not answer, whatever the cause."""

    transfers = 4
    """How many parts are worth having on their way at the same time."""

    def part_bytes(self, size: int) -> int:
        """How an object of this size is cut: a multiple of `PART_BYTES`."""
        return PART_BYTES

    def take_grant(self, grant: dict) -> None:
        """Fresh credentials from the control plane, for stores that ask for some."""

    @abstractmethod
    def get(self, key: str) -> Optional[bytes]:
        """The whole object, or None if it does not exist."""

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
        """Opens an object of any size for reading in parts; None if it does not exist."""

    @abstractmethod
    def list(self, prefix: str) -> List[str]:
        """The keys directly under a folder-like prefix (one that ends in `/`), in order."""

    @abstractmethod
    def folders(self, prefix: str) -> List[str]:
        """The names of the folders directly under a prefix that ends in `/`, in order, without the slash."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Removes the object; absent is success."""
