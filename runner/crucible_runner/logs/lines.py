"""Splits a process's output into lines. Holds only a few lines in memory."""

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from .redact import Redactor

# Longer lines are split, so that readers never have to hold more than this for one line.
LINE_BYTES_MAX = 16 * 1024
# A progress bar that is rewritten repeatedly becomes a line at this interval, which shows it without flooding the log.
REWRITE_MS = 5_000

# Multi-line bars move the cursor up again after the lower bar.
_UP = b"\x1b[A"
_BAR_BYTES_MAX = 2048
_BLANKS = b"\b\r "
_SPACES = (b" ", b"\t", b"\n", b"\r", b"\x0b", b"\x0c")
_DIGITS = re.compile(rb"\d+")
_HELD_MAX = 8
_WRITINGS_PER_LINE = 3


class LineSplitter:
    """Splits one stream. Of a line rewritten with `\\r` the last version counts. While it is being rewritten, its current version becomes a
    line at intervals."""

    def __init__(self, redactor: Callable[[], Redactor]) -> None:
        self._redactor = redactor
        self._rest = b""
        self._is_rewritten = False
        self._rewritten_since_ms = 0
        self._shown = b""
        """The content of the last line emitted for a bar that is still being rewritten, which is not repeated."""
        self._held: Dict[bytes, Tuple[bytes, bool]] = {}
        """The newest version of each bar that ended in a line end and may be drawn again, by its name; the flag says whether it stays when
        other lines follow."""
        self.writings: List[bytes] = []
        """The result of the last feed: lines, and the newest versions of rewritten lines. Not redacted."""

    @property
    def unfinished(self) -> bytes:
        """Returns the text of a line without a line end so far, such as a progress bar."""
        return self._rest

    @property
    def is_waiting(self) -> bool:
        """Whether a bar's newest version is not a line yet: `tick` emits it later."""
        return self._is_rewritten or bool(self._held)

    def feed(self, data: bytes, now_ms: int) -> List[bytes]:
        """Returns the lines that `data` completes, and the bars that are due, redacted, without their line ends."""
        lines: List[bytes] = []
        ended = (self._rest + data).split(b"\n")
        self._rest = ended.pop()
        self.writings = []
        redactor = self._redactor()
        for line in ended:
            if self._is_rewritten or b"\r" in line or _UP in line:
                self._add_rewritten(lines, line, redactor, now_ms)
            else:
                self._flush(lines, redactor)
                self.writings.append(line)
                self._add(lines, line, redactor)
        if b"\r" in self._rest[:-1]:
            self._note_writings(self._rest)
            self._begin_rewriting(now_ms)
            # A `\r` at the very end may be half of a `\r
            # `: the text before it is not yet overwritten.
            at = self._rest.rfind(b"\r", 0, len(self._rest) - 1)
            self._rest = self._rest[at + 1 :]
        while len(self._rest) > LINE_BYTES_MAX + redactor.longest:
            self._rest = self._split(lines, self._rest, redactor)
        return lines + self.tick(now_ms)

    def tick(self, now_ms: int) -> List[bytes]:
        """Returns the newest version of a bar that has been rewritten for this long without becoming a line."""
        if not self.is_waiting or now_ms - self._rewritten_since_ms < REWRITE_MS:
            return []
        lines: List[bytes] = []
        writing = _trimmed(self._rest) if self._is_rewritten else b""
        if not writing and self._held:
            key = list(self._held)[-1]
            writing = self._held.pop(key)[0]
        self._rewritten_since_ms = now_ms
        if writing and writing != self._shown:
            self._shown = writing
            self._add(lines, writing, self._redactor())
        return lines

    def end(self) -> List[bytes]:
        """Returns the text without a line end at the end of the stream."""
        lines: List[bytes] = []
        redactor = self._redactor()
        self.writings = []
        writing = _trimmed(_last_writing(self._rest)) if self._is_rewritten else _last_writing(self._rest)
        self._flush(lines, redactor)
        if writing and not (self._is_rewritten and writing == self._shown):
            self.writings.append(writing)
            self._add(lines, writing, redactor)
        self._rest, self._is_rewritten = b"", False
        return lines

    def _begin_rewriting(self, now_ms: int) -> None:
        if not self.is_waiting:
            self._rewritten_since_ms = now_ms
        self._is_rewritten = True

    def _note_writings(self, line: bytes) -> None:
        newest = [writing for writing in line.split(b"\r") if writing.strip()]
        self.writings += newest[-_WRITINGS_PER_LINE:]

    def _add_rewritten(self, lines: List[bytes], line: bytes, redactor: Redactor, now_ms: int) -> None:
        """Adds a line that was rewritten before its end; the next version of an incomplete bar may follow on a line below."""
        was_rewritten, self._is_rewritten = self._is_rewritten, False
        self._note_writings(line)
        writing = _last_writing(line)
        if not was_rewritten and b"\r" not in line.rstrip(b"\r") and _UP not in line:
            self._flush(lines, redactor)
            return self._add(lines, writing, redactor)  # it only ends in `\r\n`
        is_drawn_again = writing.rstrip().endswith(_UP)
        writing = _trimmed(writing)
        if not writing:
            return None  # a bar was erased
        bar = _bar_of(writing)
        if bar is not None:
            if is_drawn_again or not bar.is_complete:
                return self._hold(bar.key, (writing, not is_drawn_again), now_ms)
            self._held.pop(bar.key, None)
        else:
            self._flush(lines, redactor)
        if writing != self._shown:
            self._add(lines, writing, redactor)
        self._shown = b""
        return None

    def _hold(self, key: bytes, held: Tuple[bytes, bool], now_ms: int) -> None:
        if not self.is_waiting:
            self._rewritten_since_ms = now_ms
        self._held.pop(key, None)
        if held[0] != self._shown:
            self._held[key] = held
        if len(self._held) > _HELD_MAX:
            del self._held[next(iter(self._held))]

    def _flush(self, lines: List[bytes], redactor: Redactor) -> None:
        """Other lines follow: the bars will not be drawn again at the same place."""
        for writing, stays in self._held.values():
            if stays:
                self._add(lines, writing, redactor)
        self._held.clear()

    def _add(self, lines: List[bytes], line: bytes, redactor: Redactor) -> None:
        while len(line) > LINE_BYTES_MAX:
            line = self._split(lines, line, redactor)
        lines.append(redactor.clean(line))

    def _split(self, lines: List[bytes], line: bytes, redactor: Redactor) -> bytes:
        """Adds the first piece of a line that is too long; returns the rest."""
        at = LINE_BYTES_MAX
        while at > LINE_BYTES_MAX - 4 and line[at] & 0xC0 == 0x80:
            at -= 1  # not in the middle of a character
        at = redactor.cut(line, at)
        lines.append(redactor.clean(line[:at]))
        return line[at:]


def _last_writing(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _trimmed(writing: bytes) -> bytes:
    """Removes cursor movements, and the blanks that erase a longer earlier version."""
    text = _last_writing(writing)
    start, end = 0, len(text)
    while text.startswith(_UP, start):
        start += len(_UP)
    while end > start:
        if text.endswith(_UP, start, end):
            end -= len(_UP)
        elif text[end - 1] in _BLANKS:
            end -= 1
        else:
            break
    return text[start:end]


class _Bar(NamedTuple):
    name: bytes
    """The text in front of the bar."""
    done: bytes = b""
    total: bytes = b""
    """The counts as they are written; empty without a total."""

    @property
    def is_complete(self) -> bool:
        return self.total != b"" and self.done == self.total

    @property
    def key(self) -> bytes:
        return _DIGITS.sub(b"", self.name).strip()


def _bar_of(writing: bytes) -> Optional[_Bar]:
    """Returns the bar of a write that contains only a bar, ` 24%|##  | 12/50 [...]` or `26it [...]`, otherwise None: text that a program
    prints after a bar does not count as part of it. The write is taken apart from its end, so that no byte is looked at twice."""
    if not writing.endswith(b"]") or len(writing) > _BAR_BYTES_MAX:
        return None
    before = writing[: max(0, writing.rfind(b"["))]
    counted = before.rstrip()
    if len(counted) == len(before):
        return None
    return _bar_with_total(counted) or _bar_without_total(counted)


def _bar_with_total(text: bytes) -> Optional[_Bar]:
    """Reads `NAME 24%|##  | 12/50`: the counts are the only word after the second `|` of a pair."""
    space = max(text.rfind(blank) for blank in _SPACES)
    last = len(text[: space + 1].rstrip()) - 1
    second = text.find(b"|", max(last, text.find(b"|") + 1))
    if b"|" not in text[:second] or second < 0:
        return None
    counts = text[second + 1 :].lstrip()
    done, slash, total = counts[:-1].rpartition(b"/")
    if not slash or not done:
        return None
    name = text[: text.rfind(b"|", 0, second)].rstrip()
    if name.endswith(b"%"):
        digits = name[-4:-1]
        kept = len(digits.rstrip(b"0123456789"))
        if kept < len(digits):
            return _Bar(name[: kept - len(digits) - 1], done, total + counts[-1:])
    return _Bar(text[: text.rfind(b"|", 0, second)], done, total + counts[-1:])


def _bar_without_total(text: bytes) -> Optional[_Bar]:
    """Reads `NAME 26it`."""
    name = text[:-2].rstrip(b"0123456789")
    return _Bar(name) if text.endswith(b"it") and len(name) < len(text) - 2 else None
