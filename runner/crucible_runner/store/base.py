"""The object store as the runner sees it: whole objects under keys with `/`, and one atomic put-if-absent."""

import hashlib
from abc import ABC, abstractmethod
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence

from ..documents import PART_BYTES


# Objects move in pieces of this size, which bounds the memory per transfer.
BLOCK_BYTES = 256 * 1024


class StoreError(Exception):
    """The store failed the request. A retry is always worthwhile: a permanent error is a `ValueError`."""


class StoreRefused(StoreError):
    """The store forbids the request to this machine, or this machine has no valid credentials."""


class Stale(StoreError):
    """A transfer cannot be continued: the upload is gone, or the object has changed. Begin again."""


class Part(NamedTuple):
    """Bytes to upload. They can be read more than once, because they may have to be sent more than once."""

    size: int
    sha256: bytes
    blocks: Callable[[], Iterable[bytes]]


def part_of(body: bytes) -> Part:
    return Part(len(body), hashlib.sha256(body).digest(), lambda: (body,))


class Upload(ABC):
    """An upload of an object of known size. Parts may come from several threads, in any order."""

    @abstractmethod
    def put_part(self, offset: int, part: Part) -> None:
        """Adds the part that begins at `offset`, a multiple of the store's `part_bytes`. May be repeated after an error."""

    @abstractmethod
    def commit(self) -> None:
        """Makes the object visible as a whole, replacing an existing one. Requires that all parts are put. May be repeated after an error."""

    @abstractmethod
    def abort(self) -> None:
        """Discards the upload. Never raises."""


class Download(ABC):
    """A download of an object, read from several threads."""

    size: int

    @abstractmethod
    def blocks(self, offset: int, length: int) -> Iterator[bytes]:
        """Yields exactly `length` bytes in pieces of at most `BLOCK_BYTES`, or fewer at the end of the object."""

    @abstractmethod
    def close(self) -> None:
        """Never raises."""


class Store(ABC):
    """All methods raise `StoreError` when the store does not answer, whatever the cause."""

    transfers = 4
    """The useful number of concurrent parts."""

    def part_bytes(self, size: int) -> int:
        """Returns the part size for an object of this size: a multiple of `PART_BYTES`."""
        return PART_BYTES

    def take_grant(self, grant: dict) -> None:
        """Accepts new credentials from the control plane, for stores that need them."""

    def on_date(self, heard: Callable[[int], None]) -> None:
        """`heard` receives the date of each answer (wall clock), from a store with a clock of its own."""

    def bind(self, keys: Sequence[str]) -> None:
        """From now on, a store whose mark this machine may not read refuses writes while none of these objects, which it has, exists."""

    @abstractmethod
    def get(self, key: str) -> Optional[bytes]:
        """Returns the whole object, or None if it does not exist."""

    @abstractmethod
    def age_ms(self, key: str) -> Optional[int]:
        """Returns how long ago the object was written, by the store's own clock; None if it does not exist or the store does not say."""

    @abstractmethod
    def put(self, key: str, body: bytes) -> None:
        """Puts the whole object, replacing an existing one; a reader sees the old or the new object, never a part."""

    @abstractmethod
    def put_if_absent(self, key: str, body: bytes) -> bool:
        """Puts the object unless the key is taken; otherwise returns False and changes nothing."""

    @abstractmethod
    def upload(self, key: str, size: int) -> Upload:
        """Begins an upload of any size without holding the object in memory."""

    @abstractmethod
    def download(self, key: str) -> Optional[Download]:
        """Opens an object of any size for reading in parts; None if it does not exist."""

    @abstractmethod
    def list(self, prefix: str) -> List[str]:
        """Returns the keys directly under a prefix that ends in `/`, in order."""

    @abstractmethod
    def folders(self, prefix: str) -> List[str]:
        """Returns the names of the folders directly under a prefix that ends in `/`, in order, without the slash."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Removes the object; an absent object is success."""
