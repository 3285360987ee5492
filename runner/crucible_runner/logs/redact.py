"""Takes the values of secrets out of text before anything is written anywhere."""

import base64
import json
import re
from typing import Iterable, Iterator
from urllib.parse import quote, quote_plus

# Shorter values occur by chance in ordinary output, and would make it unreadable without hiding anything.
_LENGTH_MIN = 4
_MASK = b"***"


# Of an encoded value only what no neighbour changes is looked for; less of it occurs by chance.
_ENCODED_MIN = 8


def _forms(value: str) -> Iterator[str]:
    """The value as programs print it: plain, in JSON, in URLs, and in base64, also as a part of something longer."""
    yield value
    yield json.dumps(value)[1:-1]
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    if len(value) >= _LENGTH_MIN:
        raw = value.encode("utf-8", "replace")
        for before in range(3):
            # Three bytes are four characters: how many bytes stand before the value decides how it is encoded.
            encoded = base64.b64encode(b"\0" * before + raw).decode("ascii")
            first = -(-before * 8 // 6)
            sure = encoded[first : (before + len(raw)) * 8 // 6]
            if len(sure) >= _ENCODED_MIN:
                yield sure
                yield sure.translate(str.maketrans("+/", "-_"))


class Redactor:
    """Replaces secret values in bytes of UTF-8 text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = set()
        for value in secrets:
            # A value of several lines (a key file) comes out line by line; programs print values as JSON or in URLs too.
            for line in [value] + value.splitlines():
                found.update(form.encode("utf-8") for form in _forms(line.strip()) if len(form) >= _LENGTH_MIN)
        # The longest first, so that a secret that begins another does not leave the rest of it standing.
        ordered = sorted(found, key=lambda form: (-len(form), form))
        self._pattern = re.compile(b"|".join(re.escape(form) for form in ordered)) if ordered else None
        self.longest = len(ordered[0]) if ordered else 0

    def clean(self, data: bytes) -> bytes:
        return data if self._pattern is None else self._pattern.sub(_MASK, data)

    def clean_text(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self.clean(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def cut(self, data: bytes, at: int) -> int:
        """The place nearest to `at` where `data` can be cut in two without cutting a secret in two."""
        if self._pattern is not None:
            for match in self._pattern.finditer(data, max(0, at - self.longest)):
                if match.start() >= at:
                    break
                if match.end() > at:
                    return match.end()
        return at
