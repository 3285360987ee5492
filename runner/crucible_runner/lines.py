"""Turns what a process writes into lines. Keeps no more than one line in memory."""

from typing import Callable, List

from .redact import Redactor

# Longer lines are split: a reader should never have to hold more than this for one line.
LINE_BYTES_MAX = 16 * 1024


class LineSplitter:
    """Splits one stream. Of a line rewritten with `\\r` the last writing counts; the rest is never a line."""

    def __init__(self, redactor: Callable[[], Redactor]) -> None:
        self._redactor = redactor
        self._rest = b""

    @property
    def unfinished(self) -> bytes:
        """What has been written of a line that has no end yet, such as a progress bar."""
        return self._rest

    def feed(self, data: bytes) -> List[bytes]:
        """The lines that end in `data`, redacted, without their line ends."""
        lines: List[bytes] = []
        ended = (self._rest + data).split(b"\n")
        self._rest = ended.pop()
        redactor = self._redactor()
        for line in ended:
            if b"\r" in line:
                line = _last_writing(line)
            self._add(lines, line, redactor)
        if b"\r" in self._rest:
            # A `\r` at the very end may be half of a `\r\n`: what stands before it is not yet overwritten.
            at = self._rest.rfind(b"\r", 0, len(self._rest) - 1)
            self._rest = self._rest[at + 1 :]
        while len(self._rest) > LINE_BYTES_MAX + redactor.longest:
            self._rest = self._split(lines, self._rest, redactor)
        return lines

    def end(self) -> List[bytes]:
        """What was left without a line end when the stream ended."""
        lines: List[bytes] = []
        if self._rest:
            self._add(lines, _last_writing(self._rest), self._redactor())
            self._rest = b""
        return lines

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
