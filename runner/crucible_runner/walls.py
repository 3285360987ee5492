"""Opens files made by a workload without following links out of the job's directories."""

import errno
import os
import stat
from contextlib import contextmanager
from typing import Iterator, List, Optional, Sequence

_OPENING = os.O_NOFOLLOW | os.O_CLOEXEC
# A named pipe must not block its reader.
_READING = os.O_RDONLY | os.O_NONBLOCK | _OPENING


class OutsideWalls(OSError):
    """A link that leads out of the job's directories."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EXDEV, "it is a link that points outside the job's directories", path)


class Walls:
    """The directories of a job. An empty list follows every link: a job without a container reads everything that its user can read."""

    def __init__(self, roots: Optional[Sequence[str]]) -> None:
        self._roots: Optional[List[str]] = None if roots is None else [os.path.realpath(root) for root in roots]

    def holds(self, path: str) -> bool:
        """Whether the path, with all its links followed, is inside."""
        return self._roots is None or self._root_of(os.path.realpath(path)) is not None

    @contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """Yields a descriptor of a regular file. Raises `OutsideWalls`, or `OSError` for another kind of file."""
        descriptor = self._open(path)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a file", path)
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self, path: str) -> int:
        if self._roots is None:
            return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        real = os.path.realpath(path)
        root = self._root_of(real)
        if root is None:
            raise OutsideWalls(path)
        # Opened component by component: a link that the workload creates after the check above is refused, not followed.
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            *parents, name = os.path.relpath(real, root).split(os.sep)
            for parent in parents:
                inner = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | _OPENING, dir_fd=folder)
                os.close(folder)
                folder = inner
            return os.open(name, _READING, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise OutsideWalls(path) from error
            raise
        finally:
            os.close(folder)

    def _root_of(self, real: str) -> Optional[str]:
        assert self._roots is not None
        return next((root for root in self._roots if (real + os.sep).startswith(root + os.sep)), None)


NO_WALLS = Walls(None)


def path_of(descriptor: int) -> str:
    """Returns a path to the file that the descriptor has open, wherever the file's own name leads by now."""
    return "/dev/fd/%d" % descriptor
