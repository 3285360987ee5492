"""Helpers shared by the formats."""

import os
import posixpath
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional

from ...shapes import read_json
from ...walls import NO_WALLS

_HEAD_BYTES = 4096
# Indexes and states are small; larger files are not read.
_SMALL_BYTES = 32 * 1024 * 1024


class Verdict(NamedTuple):
    is_whole: bool
    text: str
    """A clause for people that begins with the finding, such as `ends with its zip directory`."""
    may_be_settings: bool = False
    """Programs also write settings in this format before they train."""
    is_written_last: bool = False
    """The finding is about the end of the file, and programs write from its beginning to its end."""


class FolderVerdict(NamedTuple):
    is_whole: bool
    text: str
    paths: FrozenSet[str]
    """The files that the verdict covers, relative to the checkpoint directory."""
    step: Optional[int] = None
    """The step recorded in the contents."""


class File:
    """A file of unknown format. Raises `OSError` when it cannot be read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.basename(path)
        with NO_WALLS.opened(path) as descriptor:
            self.size = os.fstat(descriptor).st_size
            self.head = os.pread(descriptor, _HEAD_BYTES, 0)

    def read(self, offset: int, length: int) -> bytes:
        with NO_WALLS.opened(self.path) as descriptor:
            return os.pread(descriptor, length, max(0, offset))

    def tail(self, length: int) -> bytes:
        return self.read(self.size - length, length)

    def whole(self) -> Optional[bytes]:
        """Returns the whole content of a small file; None for a larger one."""
        return self.read(0, self.size) if self.size <= _SMALL_BYTES else None


class Folder:
    """A folder of the checkpoint directory: its files and subfolders by name."""

    def __init__(self, directory: str, path: str, sizes: Dict[str, int], folders: Dict[str, "Folder"]) -> None:
        self.directory = directory
        self.path = path
        """Relative to the checkpoint directory; empty for the directory itself."""
        self.sizes = sizes
        self.folders = folders

    @property
    def name(self) -> str:
        return posixpath.basename(self.path)

    def at(self, name: str) -> str:
        return posixpath.join(self.path, name)

    def paths(self) -> FrozenSet[str]:
        """Returns the paths of all files in it and below."""
        found: List[str] = [self.at(name) for name in self.sizes]
        for folder in self.folders.values():
            found += folder.paths()
        return frozenset(found)

    def text(self, name: str) -> str:
        with NO_WALLS.opened(os.path.join(self.directory, self.at(name))) as descriptor:
            return os.pread(descriptor, _SMALL_BYTES, 0).decode("utf-8", "replace")

    def json(self, name: str) -> Any:
        """Raises `ValueError` when the file is not JSON."""
        return read_json(self.text(name))


def build(directory: str, sizes: Dict[str, int]) -> Folder:
    """Builds the folder tree for files given by their paths relative to the directory."""
    root = Folder(directory, "", {}, {})
    for path, size in sizes.items():
        folder = root
        *parents, name = path.split("/")
        for parent in parents:
            folder = folder.folders.setdefault(parent, Folder(directory, folder.at(parent), {}, {}))
        folder.sizes[name] = size
    return root
