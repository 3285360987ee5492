"""Opens sealed documents of this attempt (docs/reference/runner-protocol-store.md, "Secrets" and "Grants")."""

import base64
import hashlib
import hmac
import json
from typing import Dict, Optional

from .documents import GRANT, SEALED, parse

_KEY_BYTES = 32
_BLOCK_BYTES = 32


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
    sealed = parse(SEALED, body)
    nonce, text, tag = (base64.b64decode(sealed[name], validate=True) for name in ("nonce", "text", "tag"))
    wanted = _mac(_mac(key, b"authenticate"), nonce + text)
    if not hmac.compare_digest(tag, wanted):
        raise ValueError("it was sealed with another key, or changed")
    stream_key = _mac(key, b"encrypt")
    stream = b"".join(
        _mac(stream_key, nonce + index.to_bytes(8, "big")) for index in range(-(-len(text) // _BLOCK_BYTES))
    )
    values = json.loads(bytes(a ^ b for a, b in zip(text, stream)).decode("utf-8"))
    return {str(name): str(value) for name, value in values.items()}


def unseal_grant(body: bytes, key_path: Optional[str]) -> dict:
    """Raises `ValueError` or `OSError` with the reason if the body contains no grant."""
    if key_path is None:
        raise ValueError("the machine was given no key to open it")
    return parse(GRANT, unseal(body, read_key(key_path)).get("grant", "").encode("utf-8"))


def _mac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()
