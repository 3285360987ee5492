"""Megatron-LM and NeMo: `latest_checkpointed_iteration.txt` names the newest iteration and is written after it."""

import re
from typing import Optional

from .base import Folder, FolderVerdict

_TRACKER = "latest_checkpointed_iteration.txt"
_FOLDER = re.compile(r"iter_(\d+)")


def folder_check(folder: Folder) -> Optional[FolderVerdict]:
    numbers = {int(match.group(1)): name for name in folder.folders for match in [_FOLDER.fullmatch(name)] if match}
    if not numbers or _TRACKER not in folder.sizes:
        return None
    newest = max(numbers)
    told = folder.text(_TRACKER).strip()
    paths = folder.folders[numbers[newest]].paths() | {folder.at(_TRACKER)}
    if told != str(newest):
        return FolderVerdict(False, "%s does not name %s yet" % (folder.at(_TRACKER), numbers[newest]), paths)
    return FolderVerdict(True, "%s names %s" % (folder.at(_TRACKER), numbers[newest]), paths, newest)
