"""The workspace's rates as the user's own credentials read them at deployment, for when Modal does not tell them to the gateway itself.

As JSON of `documents.Rates`. Deploying needs nothing but Modal's client: only the gateway reads it.
"""

import json
import os
import time
from typing import TYPE_CHECKING, Mapping, Optional

if TYPE_CHECKING:
    from .documents import Rates

VARIABLE = "CRUCIBLE_GATEWAY_RATES"


def dump(usd: Mapping[str, object]) -> str:
    """As of now; `usd` are the rates by Modal's names."""
    return json.dumps({"observed_at_ms": int(time.time() * 1000), "usd": {name: str(rate) for name, rate in usd.items()}})


def variables() -> dict[str, str]:
    """Of the gateway's environment."""
    return {VARIABLE: os.environ[VARIABLE]} if os.environ.get(VARIABLE) else {}


def read() -> "Optional[Rates]":
    from .documents import Rates

    text = variables().get(VARIABLE)
    return Rates.model_validate_json(text) if text else None
