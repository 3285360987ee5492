"""Commands that print several documents, read while they arrive."""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, AsyncGenerator, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence

from . import errors

if TYPE_CHECKING:
    import asyncio

#: The longest line of a document, in bytes.
_LINE_BYTES_MAX = 64 * 1024 * 1024

#: Exit codes of shells for a missing program, or one that may not run.
_NOT_STARTED = (126, 127)

#: How long to wait for the rest of the stderr of a command that has ended, in seconds.
_LAST_WORDS_S = 2.0

#: Lines of a command's stderr that are kept for an error.
_NOTES_LINES_MAX = 500
Notes = Deque[str]

#: Maximum length of a command's stderr in an error, in bytes.
_NOTES_MAX = 2000


@dataclass(frozen=True)
class Command:
    """A command to run.

    Args:
        words: The program and its arguments.
        shown: The same for people.
        read: Checks the text of one document, with the command's stderr, and returns it.
        remark: Gets each line that the command writes to stderr, when it arrives, in any thread.
    """

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: Optional[str]
    shown: str
    read: Callable[[str, str], Dict[str, Any]]
    remark: Callable[[str], None]


class Documents:
    """Splits text into JSON documents. A document may have several lines, and a line several documents."""

    def __init__(self, read: Callable[[str, str], Dict[str, Any]]) -> None:
        self._read = read
        self._parts: List[str] = []

    def of(self, line: str) -> Iterator[Dict[str, Any]]:
        """The documents that this line completes."""
        self._parts.append(line)
        if line[:1].isspace() and line.strip():
            return  # inside an indented document, and parsing it at each line would take as long as its lines squared
        text = "".join(self._parts).lstrip()
        while text:
            try:
                _, length = json.JSONDecoder().raw_decode(text)
            except ValueError:
                if not text.startswith("{"):
                    self._read(text, "")
                break
            complete, text = text[:length], text[length:].lstrip()
            yield self._read(complete, "")
        self._parts = [text]

    def end(self, stderr: str) -> None:
        """Raises if the last document is incomplete."""
        text = "".join(self._parts).strip()
        if text:
            self._read(text, stderr)


def lines(command: Command, timeout_s: Optional[float]) -> Iterator[Dict[str, Any]]:
    """Yields each document when it is complete; see `Program.lines`."""
    is_late = threading.Event()
    notes: Notes = collections.deque(maxlen=_NOTES_LINES_MAX)
    try:
        running = subprocess.Popen(
            command.words,
            env=command.env,
            cwd=command.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise unstartable(command.words, error) from error
    assert running.stdout is not None and running.stderr is not None
    listener = threading.Thread(target=_listen, args=(command, running.stderr, notes), daemon=True)
    listener.start()

    def stop() -> None:
        is_late.set()
        running.terminate()

    timer = threading.Timer(timeout_s or 0, stop)
    timer.daemon = True
    if timeout_s is not None:
        timer.start()
    documents = Documents(command.read)
    try:
        for line in running.stdout:
            yield from documents.of(line)
        code = running.wait()
        # A process that outlives the command may keep its stderr open.
        listener.join(_LAST_WORDS_S)
    finally:
        timer.cancel()
        if running.poll() is None:
            running.terminate()
        running.wait()
        running.stdout.close()
    if is_late.is_set():
        raise TimeoutError("`%s` still runs after %g s." % (command.shown, timeout_s or 0))
    _finish(command, documents, code, notes)


async def lines_async(command: Command) -> AsyncGenerator[Dict[str, Any], None]:
    """`lines` for `asyncio`."""
    # Takes long to import, and most programs do not need it.
    import asyncio

    notes: Notes = collections.deque(maxlen=_NOTES_LINES_MAX)
    try:
        running = await asyncio.create_subprocess_exec(
            *command.words,
            env=command.env,
            cwd=command.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES_MAX,
        )
    except OSError as error:
        raise unstartable(command.words, error) from error
    assert running.stdout is not None and running.stderr is not None
    listener = asyncio.ensure_future(_listen_async(command, running.stderr, notes))
    documents = Documents(command.read)
    try:
        async for line in running.stdout:
            for document in documents.of(line.decode("utf-8", "replace")):
                yield document
        code = await running.wait()
        await asyncio.wait([listener], timeout=_LAST_WORDS_S)
    finally:
        await end(running)
        listener.cancel()
    _finish(command, documents, code, notes)


def _listen(command: Command, stderr: IO[str], notes: Notes) -> None:
    with stderr:
        for line in stderr:
            _note(command, line, notes)


async def _listen_async(command: Command, stderr: "asyncio.StreamReader", notes: Notes) -> None:
    async for line in stderr:
        _note(command, line.decode("utf-8", "replace"), notes)


def _note(command: Command, line: str, notes: Notes) -> None:
    notes.append(line)
    if line.strip():
        command.remark(line.rstrip())


def _finish(command: Command, documents: Documents, code: int, notes: Notes) -> None:
    """Raises for an incomplete document, and for an exit code of failure that no document explained."""
    stderr = "".join(notes)
    documents.end(stderr)
    if code != 0:
        raise unexplained(command.shown, code, stderr)


def unexplained(shown: str, code: int, stderr: str) -> errors.CrucibleError:
    """The error for a command that failed without a document."""
    if code in _NOT_STARTED:
        return errors.ExecutableNotFound(
            "`%s` could not be started: %s." % (shown, stderr.strip()[-_NOTES_MAX:].rstrip(".") or "exit code %d" % code),
            hint="Is Node 20.19 or newer installed, and on PATH?",
        )
    if stderr.lstrip().startswith("npm error"):
        return errors.ExecutableNotFound(
            "`%s` is not on PATH, and npx could not get it: %s" % (shown.split(" ")[0], stderr.strip()[:_NOTES_MAX]),
            hint="Set CRUCIBLE_CLI to the path of `crucible`, such as the one in a clone.",
        )
    ending = "was ended by signal %d" % -code if code < 0 else "ended with exit code %d" % code
    notes = ": " + stderr.strip()[-_NOTES_MAX:] if stderr.strip() else "."
    return errors.CommandFailed("`%s` %s and without an answer%s" % (shown, ending, notes))


def unstartable(words: Sequence[str], error: OSError) -> errors.ExecutableNotFound:
    """The error for a program that the system does not start."""
    return errors.ExecutableNotFound(
        "`%s` cannot be started: %s." % (words[0], error.strerror or error),
        hint="Check executable= and CRUCIBLE_CLI.",
    )


async def end(running: "asyncio.subprocess.Process") -> None:
    """Ends a command that still runs."""
    if running.returncode is None:
        try:
            # The signal is sent directly, because running.terminate() may reap a command that has just ended, which asyncio then misses and
            # complains about.
            os.kill(running.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        await running.wait()
