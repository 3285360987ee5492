"""Opens sealed documents of this attempt (docs/reference/runner-protocol-store.md, "Secrets" and "Grants")."""

import json
from typing import Dict, Optional

from .documents import GRANT, SEALED, parse
from .sealing import open_sealed

_KEY_BYTES = 32


def read_key(path: str) -> bytes:
    """Reads the attempt's key from its file. Raises `ValueError` or `OSError` with the reason."""
    with open(path, encoding="ascii") as file:
        text = file.read().strip()
    key = bytes.fromhex(text)
    if len(key) != _KEY_BYTES:
        raise ValueError("the key in %s must have 64 hexadecimal digits" % path)
    return key


def unseal(body: bytes, key: bytes) -> Dict[str, str]:
    """Returns names and values. Raises `ValueError` when they were not sealed with this key, or were changed since."""
    values = json.loads(open_sealed(parse(SEALED, body), key).decode("utf-8"))
    return {str(name): str(value) for name, value in values.items()}


def unseal_grant(body: bytes, key_path: Optional[str]) -> dict:
    """Raises `ValueError` or `OSError` with the reason if the body contains no grant."""
    if key_path is None:
        raise ValueError("the machine has no key to open it")
    return parse(GRANT, unseal(body, read_key(key_path)).get("grant", "").encode("utf-8"))
