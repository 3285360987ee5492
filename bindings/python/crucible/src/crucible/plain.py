"""Text of jobs reaches terminals and notebooks: sequences that move the cursor, set the title or the clipboard, or reverse the direction of
text are shown, as the command line does. Colours are left out."""

from __future__ import annotations

import re
from typing import Match

_COLOUR = re.compile("\x1b\\[[0-9;:]*m")
#: C0 except tab and newline, DEL, C1, line and paragraph separators, and characters that change the direction of text.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Text that has no other effect than to be read."""
    return CONTROL.sub(_picture, _COLOUR.sub("", text))


def _picture(control: Match[str]) -> str:
    code = ord(control.group())
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"
