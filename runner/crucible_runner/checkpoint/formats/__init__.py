"""Formats that prove themselves: they show from their content whether a file, or a folder of files, is whole or torn.

Each module knows one format. `file_check(file)` judges a single file, `folder_check(folder)` a whole folder. Both return None for other
formats.
"""

from typing import Callable, List, Optional, Tuple

from . import arrays, hdf5, json_text, pickled, safetensors, tar, text_models, zipped
from . import deepspeed, distributed, huggingface, megatron, orbax, sharded, tensorflow
from .base import File, Folder, FolderVerdict, Verdict

_FILE_CHECKS: Tuple[Callable[[File], Optional[Verdict]], ...] = (
    zipped.file_check,
    safetensors.file_check,
    hdf5.file_check,
    arrays.file_check,
    json_text.file_check,
    tar.file_check,
    text_models.file_check,
    pickled.file_check,
)
_FOLDER_CHECKS: Tuple[Callable[[Folder], Optional[FolderVerdict]], ...] = (
    huggingface.folder_check,
    sharded.folder_check,
    distributed.folder_check,
    deepspeed.folder_check,
    megatron.folder_check,
    orbax.folder_check,
    tensorflow.folder_check,
)


def check_file(path: str) -> Optional[Verdict]:
    """Returns None when the format is unknown or the file cannot be read now."""
    try:
        file = File(path)
        for check in _FILE_CHECKS:
            verdict = check(file)
            if verdict is not None:
                return verdict
    except Exception:
        pass  # whatever the error is, the file does not have the format that its first bytes suggest
    return None


def check_folder(folder: Folder) -> List[FolderVerdict]:
    """Every verdict on the files directly in a folder."""
    found = []
    for check in _FOLDER_CHECKS:
        try:
            verdict = check(folder)
        except Exception:
            continue  # the workload wrote the files, which may contain anything
        if verdict is not None:
            found.append(verdict)
    return found
