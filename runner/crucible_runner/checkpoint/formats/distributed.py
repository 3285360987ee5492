"""torch.distributed.checkpoint: the coordinator writes `.metadata` after all ranks have written their `*.distcp`."""

from typing import Optional

from .base import Folder, FolderVerdict


def folder_check(folder: Folder) -> Optional[FolderVerdict]:
    pieces = [name for name in folder.sizes if name.endswith(".distcp")]
    if not pieces:
        return None
    paths = frozenset(folder.at(name) for name in [*pieces, ".metadata"])
    if ".metadata" in folder.sizes:
        return FolderVerdict(True, "%s is there" % folder.at(".metadata"), paths)
    return FolderVerdict(False, "%s does not exist yet" % folder.at(".metadata"), paths)
