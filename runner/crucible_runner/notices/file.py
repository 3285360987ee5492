"""A notice in the form of a file `{"terminateAtMs"}`, for machines whose provider is another process of this computer."""

from typing import Callable, Optional

from ..shapes import DocumentError, read_json, record, text, whole

SHAPE = record({"path": text})
_NOTICE = record({"terminateAtMs": whole()})


def open_source(notice: dict) -> Callable[[], Optional[int]]:
    path = notice["path"]

    def poll() -> Optional[int]:
        try:
            with open(path, "rb") as file:
                body = file.read()
        except FileNotFoundError:
            return None
        try:
            return _NOTICE(read_json(body.decode("utf-8")), "")["terminateAtMs"]
        except (ValueError, DocumentError) as error:
            # The file may be half written, and an unreadable notice must not end the polling.
            raise OSError("the notice in %s cannot be read: %s" % (path, error)) from error

    return poll
