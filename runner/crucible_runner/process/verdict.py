"""Interprets the end of the workload. Pure."""

import re
import signal
from typing import List, NamedTuple, Optional

from ..endings import DRAIN_WORDS, Ending, Failed
from .causes import cause_of, uncaught
from .leash import GOOD_ORDER

_MESSAGE_MAX = 500
# The engine's advice follows its error.
_ENGINE_SAYS = re.compile(r"docker: |Error: |podman: ")


class End(NamedTuple):
    """How a command ended."""

    status: int
    """The exit code, or the number of the signal that ended it, negative."""
    was_asked_to_stop: bool
    was_killed: bool
    """The runner killed it."""
    error_lines: List[str]
    lines: List[str]
    """The last ones of both outputs, in the order of their arrival."""
    is_disk_full: bool
    is_out_of_memory: bool
    """The kernel's OOM killer has killed a process in the meantime."""

    @property
    def is_in_good_order(self) -> bool:
        """The command ended because it was done, or had completed its save."""
        if self.was_killed:
            return False
        return self.status in GOOD_ORDER if self.was_asked_to_stop else self.status == 0


def judge(end: End, drain_reason: Optional[str], is_done: bool) -> Ending:
    """Returns the attempt's ending; `is_done` when progress reports the last step as done."""
    code, name = (end.status, None) if end.status >= 0 else (None, signal_name(-end.status))
    if end.was_asked_to_stop or end.was_killed:
        if not (end.status == 0 and is_done):
            reason = drain_reason or "interrupted"
            how = "had to be killed" if end.was_killed else describe(end)
            return Ending(
                "stopped", reason, _sentence("%s; the command %s" % (DRAIN_WORDS[reason], how)), code, name
            )
    elif end.status != 0:
        reason = "disk-full" if end.is_disk_full else "workload"
        return Ending("failed", reason, failure_words("the command", end), code, name)
    return Ending("succeeded", "completed", "The command ended with exit code 0.", code, name)


def engine_failure(end: End, image: str) -> Optional[Failed]:
    """Returns why a container that never ran its script has ended; None if that is unknown. With 125 the engine itself has failed, with 126
    or 127 it could not start the shell of the image (Docker and Podman document the same)."""
    said = [line for line in end.error_lines if line.strip()]
    words = next((line for line in reversed(said) if _ENGINE_SAYS.match(line)), said[-1] if said else "no reason given").strip().rstrip(".")
    if end.status == 125:
        return Failed("engine", "The machine's container engine cannot start the container: %s." % words)
    if end.status in (126, 127) or "exec format error" in words.lower():
        return Failed("image", "The image %s cannot run a shell on this machine: %s." % (image, words))
    return None


def hidden_failure(end: End) -> Optional[str]:
    """Returns a warning about a command that succeeded although a program of it seems to have failed; None without one."""
    raised = uncaught(end.error_lines, end.lines) if end.status == 0 else None
    if raised is None:
        return None
    return (
        "The command ended with exit code 0, but its errors end with a traceback: %s. Shells ignore a failure in a condition, before &&, in an "
        "argument and before wait: check that the program did its work." % raised
    )


def failure_words(what: str, end: End) -> str:
    """Returns one sentence about a failed command, with the line of its output that tells the cause."""
    words = "%s %s" % (what, describe(end))
    if end.is_disk_full:
        words += "; the machine's disk is full"
    said = cause_of(end.error_lines, end.lines)
    return _sentence(words) if said is None else _sentence(words + ": " + said)


def describe(end: End) -> str:
    number = -end.status if end.status < 0 else end.status - 128
    memory = ", most likely out of memory" if number == signal.SIGKILL and end.is_out_of_memory else ""
    if end.status < 0:
        return "was killed by %s%s" % (signal_name(number), memory)
    if number > 0 and signal_name(number) != str(number):
        return "ended with exit code %d, as after %s%s" % (end.status, signal_name(number), memory)
    return "ended with exit code %d" % end.status


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _sentence(words: str) -> str:
    shortened = words if len(words) <= _MESSAGE_MAX else words[:_MESSAGE_MAX] + "..."
    sentence = shortened[0].upper() + shortened[1:]
    return sentence if sentence.endswith((".", "!", "?")) else sentence + "."
