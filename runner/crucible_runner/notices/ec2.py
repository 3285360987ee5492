"""EC2's interruption notice, two minutes before it takes a spot machine back, and the rebalance recommendation that may precede it: both
are in the machine's own metadata."""

import json
import os
from datetime import datetime, timezone
from typing import Callable, Mapping, Optional

from ..imds import Metadata
from ..shapes import DocumentError, record, text

SHAPE = record({})
_PATH = "/latest/meta-data/spot/instance-action"
# `action` may be `terminate`, `stop` or `hibernate`: the machine stops working in each case.
_ACTION = record({"time": text})
_HINT_PATH = "/latest/meta-data/events/recommendations/rebalance"
_HINT = record({"noticeTime": text})

Poll = Callable[[], Optional[int]]


def open_source(_notice: dict, environment: Mapping[str, str] = os.environ) -> Poll:
    return _poller(environment, _PATH, lambda told: _ACTION(told, "")["time"])


def open_hint(_notice: dict, environment: Mapping[str, str] = os.environ) -> Poll:
    return _poller(environment, _HINT_PATH, lambda told: _HINT(told, "")["noticeTime"])


def _poller(environment: Mapping[str, str], path: str, instant_of: Callable[[dict], str]) -> Poll:
    metadata = Metadata(environment)

    def poll() -> Optional[int]:
        body = metadata.get(path)
        if body is None:
            return None
        try:
            return _instant_ms(instant_of(json.loads(body)))
        except (ValueError, DocumentError) as error:
            raise OSError("the notice in the instance metadata cannot be read: %s" % error) from error

    return poll


def _instant_ms(written: str) -> int:
    """Parses `2026-11-21T10:00:00Z`, with or without a fraction."""
    format = "%Y-%m-%dT%H:%M:%S.%fZ" if "." in written else "%Y-%m-%dT%H:%M:%SZ"
    return round(datetime.strptime(written, format).replace(tzinfo=timezone.utc).timestamp() * 1000)
