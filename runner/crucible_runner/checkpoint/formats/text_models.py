"""Text models with a final section: LightGBM's `save_model`."""

from typing import Optional

from .base import File, Verdict

_LIGHTGBM_END = b"\npandas_categorical:"
_TAIL_BYTES = 64 * 1024


def file_check(file: File) -> Optional[Verdict]:
    if not file.head.startswith(b"tree\nversion="):
        return None
    tail = file.tail(_TAIL_BYTES)
    if _LIGHTGBM_END in tail and tail.endswith(b"\n"):
        return Verdict(True, "ends with the last section of a LightGBM model", is_written_last=True)
    return Verdict(False, "lacks the last section of a LightGBM model")
