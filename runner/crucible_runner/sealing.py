"""Opens sealed text (docs/reference/runner-protocol-store.md, "Secrets"). Imports nothing else of the runner: the bootstrap contains it."""

import base64
import hashlib
import hmac

_BLOCK_BYTES = 32


def open_sealed(sealed: dict, key: bytes) -> bytes:
    """`sealed` has `nonce`, `text` and `tag` in Base64. Raises `ValueError` when they were not sealed with this key, or were changed since."""
    nonce, text, tag = (base64.b64decode(sealed[name], validate=True) for name in ("nonce", "text", "tag"))
    if not hmac.compare_digest(tag, _mac(_mac(key, b"authenticate"), nonce + text)):
        raise ValueError("it was sealed with another key, or modified")
    stream_key = _mac(key, b"encrypt")
    blocks = range(-(-len(text) // _BLOCK_BYTES))
    stream = b"".join(_mac(stream_key, nonce + index.to_bytes(8, "big")) for index in blocks)
    return bytes(a ^ b for a, b in zip(text, stream))


def _mac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()
