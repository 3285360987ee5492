"""DeepSpeed: `latest` names the folder of the newest checkpoint and is written after it."""

import re
from typing import Optional

from .base import Folder, FolderVerdict

_MODEL_STATES = re.compile(r"mp_rank_\d+_model_states\.pt")
_STEP = re.compile(r"global_step(\d+)")


def _is_of_states(file: str) -> bool:
    of_optimizer = file.partition("zero_pp_rank_")[2]
    return of_optimizer.endswith("_optim_states.pt") or _MODEL_STATES.fullmatch(file) is not None


def folder_check(folder: Folder) -> Optional[FolderVerdict]:
    tags = {
        name: inner for name, inner in folder.folders.items() if any(map(_is_of_states, inner.sizes))
    }
    if not tags:
        return None
    latest = folder.text("latest").strip() if "latest" in folder.sizes else ""
    newest = max(tags, key=lambda name: (int(_STEP.search(name).group(1)) if _STEP.search(name) else -1, name))
    paths = tags[newest].paths() | {folder.at("latest")}
    if latest != newest:
        return FolderVerdict(False, "%s does not name %s yet" % (folder.at("latest"), newest), paths)
    step = _STEP.search(newest)
    return FolderVerdict(True, "%s names %s" % (folder.at("latest"), newest), paths, int(step.group(1)) if step else None)
