"""Holds links to, or copies of, a checkpoint that the workload replaces faster than it can be judged complete.

Such files never become quiet in their directory. The held ones do, once their writer has begun the next save.
"""

import os
from typing import Dict, Optional, Set

from ..paths import remove_tree
from ..walls import NO_WALLS, Walls, path_of
from .names import is_database
from .scan import FileStamp, Selection, serious_files, stamp_of
from .staging import copy_file, link_opened


class Hold:
    """Holds at most one checkpoint, under `folder`."""

    def __init__(self, folder: str, walls: Walls = NO_WALLS) -> None:
        self._walls = walls
        self.folder = folder
        self.selection: Optional[Selection] = None
        self.in_place: Set[str] = set()
        """Paths that the workload writes in place: a link does not preserve their content."""

    def take(self, directory: str, selection: Selection) -> bool:
        """Holds the selection's files; returns False when one of them cannot be held, or has changed since the selection was made."""
        self.release()
        paths = serious_files(selection)
        # A link to a database has not what is only in its log.
        if not paths or any(is_database(path) or not self._take(directory, path) for path in paths):
            self.release()
            return False
        # Records are included and may keep changing; a record that has just been deleted is left out.
        files = {each: stamp for each, stamp in selection.files.items() if each in paths or self._take(directory, each)}
        self.selection = selection._replace(files=files)
        return self.is_intact() and _are_same(directory, {path: paths[path] for path in self.in_place & paths.keys()})

    def _take(self, directory: str, path: str) -> bool:
        source, target = os.path.join(directory, path), os.path.join(self.folder, path)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with self._walls.opened(source) as descriptor:
                if path not in self.in_place:
                    return link_opened(descriptor, source, target)
                copy_file(path_of(descriptor), target)
                status = os.fstat(descriptor)
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
                return True
        except OSError:
            return False

    def is_intact(self) -> bool:
        """Returns False when one of the files was written to since."""
        return self.selection is not None and not self.changed()

    def changed(self) -> Set[str]:
        """Returns the files that were written to since they were held."""
        files = serious_files(self.selection) if self.selection is not None else {}
        return {path for path, stamp in files.items() if not _is_same(self.folder, path, stamp, path in self.in_place)}

    def release(self) -> None:
        self.selection = None
        remove_tree(self.folder)


def _are_same(folder: str, files: Dict[str, FileStamp]) -> bool:
    return all(_is_same(folder, path, stamp, False) for path, stamp in files.items())


def _is_same(folder: str, path: str, stamp: FileStamp, is_copy: bool) -> bool:
    try:
        now = stamp_of(os.path.join(folder, path))
        return now.content == stamp.content if is_copy else now == stamp
    except OSError:
        return False
