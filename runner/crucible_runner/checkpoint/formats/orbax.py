"""Orbax: a step is written in a folder with a temporary name, then renamed, or marked with `commit_success.txt`."""

from typing import Optional

from .base import Folder, FolderVerdict

_COMMITTED = "commit_success.txt"
_METADATA = "_CHECKPOINT_METADATA"


def folder_check(folder: Folder) -> Optional[FolderVerdict]:
    if _COMMITTED in folder.sizes:
        return FolderVerdict(True, "%s is there" % folder.at(_COMMITTED), folder.paths())
    if _METADATA not in folder.sizes:
        return None
    # Folders with a temporary name are ignored, so this folder has already been renamed.
    step = int(folder.name) if folder.name.isdigit() else None
    return FolderVerdict(True, "Orbax has renamed %s into place" % (folder.path or "it"), folder.paths(), step)
