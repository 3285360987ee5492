"""Takes the values of secrets out of text before anything is written anywhere."""

import json
import re
from typing import Iterable
from urllib.parse import quote

# Shorter values occur by chance in ordinary output, and would make it unreadable without hiding anything.
_LENGTH_MIN = 4
_MASK = b"***"


class Redactor:
    """Replaces secret values in bytes of UTF-8 text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = set()
        for value in secrets:
            # A value of several lines (a key file) comes out line by line; programs print values as JSON or in URLs too.
            for line in [value] + value.splitlines():
                for form in (line.strip(), json.dumps(line.strip())[1:-1], quote(line.strip(), safe="")):
                    if len(form) >= _LENGTH_MIN:
                        found.add(form.encode("utf-8"))
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
