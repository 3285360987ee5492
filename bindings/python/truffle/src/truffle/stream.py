"""The documents of a command that prints several, read while they arrive."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterator


class Documents:
    """Splits text into JSON documents. A document may have several lines, and a line several documents.

    Args:
        read: Checks the text of one document, with what the command wrote to stderr, and returns it.
    """

    def __init__(self, read: Callable[[str, str], Dict[str, Any]]) -> None:
        self._read = read
        self._text = ""

    def of(self, text: str) -> Iterator[Dict[str, Any]]:
        """The documents that this text completes."""
        self._text = (self._text + text).lstrip()
        while self._text:
            try:
                _, length = json.JSONDecoder().raw_decode(self._text)
            except ValueError:
                if not self._text.startswith("{"):
                    self._read(self._text, "")
                return
            complete, self._text = self._text[:length], self._text[length:].lstrip()
            yield self._read(complete, "")

    def end(self, stderr: str) -> None:
        """Raises if the last document is incomplete."""
        if self._text:
            self._read(self._text, stderr)
