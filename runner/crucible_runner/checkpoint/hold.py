"""Holds a link to a single-file checkpoint that the workload replaces faster than it can be judged complete.

Such a file never becomes quiet in its directory. The linked file does, once its writer has replaced it with the next one.
"""

import os
from typing import Optional

from ..paths import remove_tree
from ..walls import NO_WALLS, Walls
from .names import is_database
from .scan import Selection, single_file, stamp_of
from .staging import link_opened


class Hold:
    """Holds at most one file, by a link under `folder`."""

    def __init__(self, folder: str, walls: Walls = NO_WALLS) -> None:
        self._walls = walls
        self.folder = folder
        self.selection: Optional[Selection] = None

    def take(self, directory: str, selection: Selection) -> bool:
        """Holds the selection's file; returns False when the selection has several files, or the file cannot be linked."""
        self.release()
        path = single_file(selection)
        # A link to a database has not what is only in its log.
        if path is None or is_database(path) or not self._link(directory, path):
            return False
        # Records are included and may keep changing; a record that has just been deleted is left out.
        files = {each: stamp for each, stamp in selection.files.items() if each == path or self._link(directory, each)}
        self.selection = selection._replace(files=files)
        return self.is_intact()

    def _link(self, directory: str, path: str) -> bool:
        target = os.path.join(self.folder, path)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with self._walls.opened(os.path.join(directory, path)) as descriptor:
                return link_opened(descriptor, os.path.join(directory, path), target)
        except OSError:
            return False

    def is_intact(self) -> bool:
        """Returns False when the file was written to since."""
        path = single_file(self.selection) if self.selection is not None else None
        if path is None:
            return False
        try:
            return stamp_of(os.path.join(self.folder, path)) == self.selection.files[path]
        except OSError:
            return False

    def release(self) -> None:
        if self.selection is not None:
            self.selection = None
            remove_tree(self.folder)
