"""Removes secret values from text before the text is written anywhere."""

import base64
import html
import re
from typing import Iterable, Iterator, List, Match, Tuple
from urllib.parse import quote_plus

# Shorter values occur by chance in ordinary output; redacting them would make it unreadable without hiding anything.
_LENGTH_MIN = 4
_MASK = b"***"

# Only the part of an encoded value that does not depend on its neighbours is searched; shorter parts occur by chance.
_ENCODED_MIN = 8

# Escapes of URLs, HTML, JSON, shells and most languages. Each alternative has a limited length.
_ESCAPE = re.compile(
    rb"%([0-9A-Fa-f]{2})"
    rb"|(&(?:#[0-9]{1,10}|#[xX][0-9A-Fa-f]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});)"
    rb"|\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|u\{([0-9A-Fa-f]{1,6})\}"
    rb"|x([0-9A-Fa-f]{2})|([0-3][0-7]{2})|([^0-9A-Za-z]|[bfnrtv]))"
    rb"|('\"'\"')"
)
_BYTE = re.compile(rb"\\x[89A-Fa-f]")
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
# Text that contains escapes may itself be escaped, such as JSON within JSON.
_PASSES = 3
# The longest escape of one byte that a secret is searched in, of the last pass.
_ESCAPE_BYTES_MAX = 12


def _forms(value: str) -> Iterator[bytes]:
    """Yields the forms in which programs print the value, apart from escapes: plain, as in a form of the web, in hex, and in base32 and
    base64, also within a longer encoded text."""
    raw = value.encode("utf-8", "replace")
    yield raw
    # Unescaping also changes a value that looks escaped, such as one with a backslash.
    for is_character in (False, True):
        text = raw
        for _ in range(_PASSES):
            text, _places = _unescaped(text, [0] * (len(text) + 1), is_character)
            yield text
    yield quote_plus(value.encode("utf-8", "replace")).encode("ascii")
    if len(value) < _LENGTH_MIN:
        return
    yield raw.hex().encode("ascii")
    yield raw.hex().upper().encode("ascii")
    for encode, block, bits in ((base64.b64encode, 3, 6), (base64.b32encode, 5, 5)):
        for before in range(block):
            # A block of bytes becomes a block of characters, so the encoding depends on the number of bytes before the value.
            first = -(-before * 8 // bits)
            sure = encode(b"\0" * before + raw)[first : (before + len(raw)) * 8 // bits]
            if len(sure) >= _ENCODED_MIN:
                yield sure
                yield sure.replace(b"+", b"-").replace(b"/", b"_") if bits == 6 else sure.lower()


def _meaning(match: Match[bytes], is_character: bool) -> bytes:
    """The bytes that an escape stands for; the escape itself if it stands for none. `\\xfc` is a character or a byte."""
    percent, entity, high, low, unit, long_unit, braces, byte, octal, sign, quote = match.groups()
    if quote is not None:
        return b"'"
    if byte is not None and is_character:
        return chr(int(byte, 16)).encode("utf-8")
    if entity is not None:
        return html.unescape(entity.decode("ascii")).encode("utf-8", "replace")
    if sign is not None:
        return _LETTERS.get(sign, sign)
    if percent is not None or byte is not None:
        return bytes.fromhex((percent or byte).decode("ascii"))
    if octal is not None:
        return bytes([int(octal, 8)])
    if high is not None:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)).encode("utf-8")
    code = int(unit or long_unit or braces, 16)
    return chr(code).encode("utf-8", "replace") if code <= 0x10FFFF else match.group()


def _unescaped(data: bytes, starts: List[int], is_character: bool) -> Tuple[bytes, List[int]]:
    """Returns the text without one layer of escapes. `starts` has the place of each byte in the original text, and that of its end."""
    parts, places, done = [], [], 0
    for match in _ESCAPE.finditer(data):
        meaning = _meaning(match, is_character)
        parts += [data[done : match.start()], meaning]
        places += starts[done : match.start()]
        # An escape is hidden as a whole, so each byte of its meaning begins where the escape begins.
        places += [starts[match.start()]] * len(meaning)
        done = match.end()
    return b"".join(parts) + data[done:], places + starts[done:]


def _pattern_of(forms: List[bytes]) -> "re.Pattern[bytes]":
    """Matches any of the forms. The first bytes of all forms come first, because almost no place of a log has them."""
    firsts = (b"".join(re.escape(form[at : at + 1]) for form in forms) for at in range(_LENGTH_MIN))
    return re.compile(b"(?=%s)(?:%s)" % (b"".join(b"[%s]" % each for each in firsts), b"|".join(re.escape(form) for form in forms)))


class Redactor:
    """Replaces secret values in bytes of UTF-8 text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = set()
        for value in secrets:
            # A value of several lines (a key file) is printed line by line.
            for line in [value] + value.splitlines():
                found.update(form for form in _forms(line.strip()) if len(form) >= _LENGTH_MIN)
        # The longest values are replaced first, so that a secret that is a prefix of another does not leave the rest of it visible.
        ordered = sorted(found, key=lambda form: (-len(form), form))
        self._pattern = _pattern_of(ordered) if ordered else None
        self.longest = len(ordered[0]) * _ESCAPE_BYTES_MAX if ordered else 0

    def clean(self, data: bytes) -> bytes:
        if self._pattern is None:
            return data
        parts, done = [], 0
        for start, end in self._spans(data):
            parts += [data[done:start], _MASK]
            done = end
        return b"".join(parts) + data[done:]

    def clean_text(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self.clean(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def cut(self, data: bytes, at: int) -> int:
        """Returns the position nearest to `at` where `data` can be split without splitting a secret."""
        if self._pattern is not None:
            first = max(0, at - self.longest)
            for start, end in self._spans(data[first:]):
                if first + start >= at:
                    break
                if first + end > at:
                    return first + end
        return at

    def _spans(self, data: bytes) -> List[Tuple[int, int]]:
        """Returns where secrets are, in order and without overlaps, also those with escapes."""
        assert self._pattern is not None
        spans = [match.span() for match in self._pattern.finditer(data)]
        if _ESCAPE.search(data) is not None:
            for is_character in (False, True) if _BYTE.search(data) is not None else (False,):
                spans += self._escaped_spans(data, is_character)
        return _merged(spans)

    def _escaped_spans(self, data: bytes, is_character: bool) -> Iterator[Tuple[int, int]]:
        assert self._pattern is not None
        text, starts = data, list(range(len(data) + 1))
        for _ in range(_PASSES):
            text, starts = _unescaped(text, starts, is_character)
            for match in self._pattern.finditer(text):
                yield starts[match.start()], starts[match.end()]
            if _ESCAPE.search(text) is None:
                return


def _merged(spans: List[Tuple[int, int]]) -> List[Tuple[int, int]]:
    merged: List[Tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
