"""The notice that EC2 gives a spot machine two minutes before it takes it back: in the machine's own metadata."""

import json
import os
from datetime import datetime, timezone
from typing import Callable, Mapping, Optional

from ..imds import Metadata
from ..shapes import DocumentError, record, text

SHAPE = record({})
_PATH = "/latest/meta-data/spot/instance-action"
# `action` may be `terminate`, `stop` or `hibernate`: whichever it is, the machine stops to work.
_ACTION = record({"time": text})


def open_source(_notice: dict, environment: Mapping[str, str] = os.environ) -> Callable[[], Optional[int]]:
    metadata = Metadata(environment)

    def look() -> Optional[int]:
        body = metadata.get(_PATH)
        if body is None:
            return None
        try:
            return _instant_ms(_ACTION(json.loads(body), "")["time"])
        except (ValueError, DocumentError) as error:
            raise OSError("the notice in the instance metadata cannot be read: %s" % error) from error

    return look


def _instant_ms(written: str) -> int:
    """`2026-11-21T10:00:00Z`, with or without a fraction."""
    format = "%Y-%m-%dT%H:%M:%S.%fZ" if "." in written else "%Y-%m-%dT%H:%M:%SZ"
    return round(datetime.strptime(written, format).replace(tzinfo=timezone.utc).timestamp() * 1000)
