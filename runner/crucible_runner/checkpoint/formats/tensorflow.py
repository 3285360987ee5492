"""TensorFlow: `checkpoint` names the newest prefix and is written after the data and index of that prefix."""

import re
from typing import Optional

from .base import Folder, FolderVerdict

_NAMED = re.compile(r'^model_checkpoint_path:\s*"(.+)"', re.MULTILINE)
_DATA = re.compile(r"(.+)\.data-\d+-of-(\d+)")


def folder_check(folder: Folder) -> Optional[FolderVerdict]:
    data = [match for match in map(_DATA.fullmatch, folder.sizes) if match]
    if not data:
        return None
    match = _NAMED.search(folder.text("checkpoint")) if "checkpoint" in folder.sizes else None
    prefixes = {found.group(1): int(found.group(2)) for found in data}
    if match is None:
        return None  # weights alone; their index proves nothing
    prefix = match.group(1).rpartition("/")[2]
    newest = max(prefixes, key=_number)
    ours = [found.group(0) for found in data if found.group(1) == newest]
    paths = frozenset(folder.at(name) for name in [*ours, newest + ".index", "checkpoint"])
    if newest != prefix or len(ours) != prefixes[newest] or newest + ".index" not in folder.sizes:
        return FolderVerdict(False, "%s does not name a complete %s yet" % (folder.at("checkpoint"), newest), paths)
    number = _number(newest)[0]
    return FolderVerdict(True, "%s names %s" % (folder.at("checkpoint"), newest), paths, number if number >= 0 else None)


def _number(prefix: str) -> tuple:
    found = re.search(r"(?<!\d)(\d+)$", prefix)
    return (int(found.group(1)) if found else -1, prefix)
