"""Removes secret values from text before the text is written anywhere."""

import base64
import json
import re
from typing import Iterable, Iterator
from urllib.parse import quote, quote_plus

# Shorter values occur by chance in ordinary output; redacting them would make it unreadable without hiding anything.
_LENGTH_MIN = 4
_MASK = b"***"


# Only the part of an encoded value that does not depend on its neighbours is searched; shorter parts occur by chance.
_ENCODED_MIN = 8


def _forms(value: str) -> Iterator[str]:
    """Yields the forms in which programs print the value: plain, JSON, URL, and base64, also within a longer encoded text."""
    yield value
    yield json.dumps(value)[1:-1]
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    if len(value) >= _LENGTH_MIN:
        raw = value.encode("utf-8", "replace")
        for before in range(3):
            # Base64 encodes three bytes as four characters, so the encoding depends on the number of bytes before the value.
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
            # A value of several lines (a key file) is printed line by line; programs also print values in JSON or in URLs.
            for line in [value] + value.splitlines():
                found.update(form.encode("utf-8") for form in _forms(line.strip()) if len(form) >= _LENGTH_MIN)
        # The longest values are replaced first, so that a secret that is a prefix of another does not leave the rest of it visible.
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
        """Returns the position nearest to `at` where `data` can be split without splitting a secret."""
        if self._pattern is not None:
            for match in self._pattern.finditer(data, max(0, at - self.longest)):
                if match.start() >= at:
                    break
                if match.end() > at:
                    return match.end()
        return at
