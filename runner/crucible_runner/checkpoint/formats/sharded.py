"""Weights in shards: `*.index.json` names every shard (Transformers, Diffusers, Accelerate)."""

from typing import Optional, Set

from .base import Folder, FolderVerdict


def folder_check(folder: Folder) -> Optional[FolderVerdict]:
    shards: Set[str] = set()
    names = [name for name in folder.sizes if name.endswith(".index.json")]
    for name in names:
        shards.update(folder.json(name).get("weight_map", {}).values())
    if not shards:
        return None
    missing = sorted(shard for shard in shards if shard not in folder.sizes)
    paths = frozenset(folder.at(name) for name in [*names, *shards])
    if missing:
        return FolderVerdict(False, "%s, named in %s, does not exist yet" % (missing[0], folder.at(names[0])), paths)
    # Each shard must still prove itself: an index may be written first.
    return None
