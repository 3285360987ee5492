"""A notice that appears as a file `{"terminateAtMs"}`: machines whose provider is another process of this computer."""

import json
from typing import Callable, Optional

from ..shapes import DocumentError, record, text, whole

SHAPE = record({"path": text})
_NOTICE = record({"terminateAtMs": whole()})


def open_source(notice: dict) -> Callable[[], Optional[int]]:
    path = notice["path"]

    def look() -> Optional[int]:
        try:
            with open(path, "rb") as file:
                body = file.read()
        except FileNotFoundError:
            return None
        try:
            return _NOTICE(json.loads(body.decode("utf-8")), "")["terminateAtMs"]
        except (ValueError, DocumentError) as error:
            # It may be half written; and a notice that nobody can read must not stop the looking.
            raise OSError("the notice in %s cannot be read: %s" % (path, error)) from error

    return look
