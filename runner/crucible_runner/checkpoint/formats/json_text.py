"""JSON documents, such as an XGBoost model or the state of a trainer."""

import json
from typing import Optional

from .base import File, Verdict


def file_check(file: File) -> Optional[Verdict]:
    if not file.name.lower().endswith(".json"):
        return None
    body = file.whole()
    if body is None:
        return None
    try:
        # Programs may write `NaN` and integers of any length.
        json.loads(body, parse_int=str)
        return Verdict(True, "is complete JSON", may_be_settings=True)
    except (ValueError, RecursionError):
        # A file that is named like JSON but contains something else may end in any way.
        is_closed = body.rstrip()[-1:] in (b"}", b"]")
        return None if is_closed else Verdict(False, "is a JSON document that is cut off")
