"""Runs Crucible's command lines, ``truffle`` and ``crucible``, and reads their JSON documents.

Both packages of Python use this module; the tables for people are never parsed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, AsyncGenerator, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

from . import errors, stream

if TYPE_CHECKING:
    import asyncio

#: Forms of the JSON documents that this version understands, by program.
SCHEMAS: Mapping[str, str] = {"truffle": "truffle/1", "crucible": "crucible/1"}

#: The package of npm that has both programs.
NPM_PACKAGE = "crucible-ml"

#: Kinds of errors in the documents, and the classes that are raised for them. Each kind has one exit code of the command line.
ERRORS: Mapping[str, Type[errors.CrucibleError]] = {
    "failed": errors.CommandFailed,
    "usage": errors.UsageError,
    "capacity": errors.CapacityError,
    "permission": errors.PermissionError,
    "not-found": errors.NotFoundError,
    "unconfirmed": errors.UnconfirmedError,
    "unavailable": errors.UnavailableError,
    "not-survived": errors.NotSurvivedError,
    "conditional": errors.ConditionalError,
    "interrupted": errors.InterruptedError,
}

#: Exit codes of the command line, and their kinds.
EXIT_CODES: Mapping[int, str] = {
    1: "failed",
    2: "usage",
    3: "capacity",
    4: "permission",
    5: "not-found",
    6: "unconfirmed",
    7: "unavailable",
    8: "not-survived",
    9: "conditional",
    130: "interrupted",
}

Document = Dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A command line of Crucible.

    Args:
        name: ``truffle`` or ``crucible``.
        executable: The command to run, as one string with its arguments quoted for a shell. By default the first that exists of:
            the variable ``CRUCIBLE_CLI`` (the path of ``crucible``; ``truffle`` is looked for next to it), the program on ``PATH``,
            and ``npx crucible-ml``.
        env: Variables in addition to those of this process.
        cwd: Folder in which the command runs.
    """

    name: str
    executable: Optional[str] = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Optional[str] = None

    def command(self) -> List[str]:
        """The words that start the program. Raises `errors.ExecutableNotFound` if nothing can start it."""
        if self.executable is not None:
            return _split("executable=", self.executable)
        environment = self._environment()
        named = environment.get("CRUCIBLE_CLI", "").strip()
        if named:
            return self._named(_split("CRUCIBLE_CLI", named), environment)
        found = shutil.which(self.name, path=environment.get("PATH"))
        if found is not None:
            return [found]
        npx = shutil.which("npx", path=environment.get("PATH"))
        if npx is not None:
            return [npx, "--yes", "--package", NPM_PACKAGE, self.name]
        raise errors.ExecutableNotFound(
            "Neither `%s` nor npx is on PATH." % self.name,
            hint="Install Node 20.19 or newer and run `npm install --global %s`, or set CRUCIBLE_CLI to the path of `crucible`."
            % NPM_PACKAGE,
        )

    def run(self, *args: str, input: Optional[str] = None) -> Document:
        """Runs a command and returns its JSON document.

        Raises a subclass of `errors.CrucibleError` for an error of the command, and `errors.SchemaMismatch` for a document of
        another version.
        """
        return self.ask(*args, input=input)[0]

    async def run_async(self, *args: str) -> Document:
        """`run` for `asyncio`. Ending the task ends the command."""
        return (await self.ask_async(*args))[0]

    def ask(self, *args: str, input: Optional[str] = None) -> Tuple[Document, int]:
        """`run`, with the exit code: an answer may be a "no"."""
        words = self._words(args)
        try:
            done = subprocess.run(
                words,
                env=self._environment(),
                cwd=self.cwd,
                input=input,
                stdin=subprocess.DEVNULL if input is None else None,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise stream.unstartable(words, error) from error
        return self._read(args, done.stdout, done.stderr, done.returncode), done.returncode

    async def ask_async(self, *args: str) -> Tuple[Document, int]:
        """`ask` for `asyncio`. Ending the task ends the command."""
        running = await self._start(args)
        try:
            stdout, stderr = await running.communicate()
        finally:
            await stream.end(running)
        code = running.returncode or 0
        return self._read(args, _text(stdout), _text(stderr), code), code

    def lines(self, *args: str, timeout_s: Optional[float] = None) -> Iterator[Document]:
        """Runs a command that prints documents one after the other, and yields each when it is complete.

        Closing the iterator ends the command. Raises as `run`, also when the command ends with an exit code of failure after its
        last document, and `TimeoutError` if it still runs after `timeout_s` seconds.
        """
        return stream.lines(self._streamed(args), timeout_s)

    def lines_async(self, *args: str) -> AsyncGenerator[Document, None]:
        """`lines` for `asyncio`, which has time limits of its own."""
        return stream.lines_async(self._streamed(args))

    def _streamed(self, args: Sequence[str]) -> stream.Command:
        return stream.Command(
            words=self._words(args),
            env=self._environment(),
            cwd=self.cwd,
            shown=_shown(self.name, args),
            read=lambda text, stderr: self._document(args, text, stderr),
            remark=self._remark,
        )

    def _remark(self, text: str) -> None:
        """Passes on what a command that still runs says to people: changes of state as information, other lines as warnings."""
        # Takes long to import, and most commands say nothing.
        import logging

        is_change = text.startswith("%s: " % self.name)
        logging.getLogger(self.name).log(logging.INFO if is_change else logging.WARNING, "%s", text)

    def _words(self, args: Sequence[str]) -> List[str]:
        # Arguments after -- belong to a script.
        return [*self.command(), *args[:1], "--json", *args[1:]]

    def _environment(self) -> Dict[str, str]:
        return {**os.environ, **self.env}

    def _named(self, words: List[str], environment: Mapping[str, str]) -> List[str]:
        """The program next to the one that ``CRUCIBLE_CLI`` names."""
        if not words or self.name == "crucible":
            return words
        folder, base = os.path.split(words[-1])
        beside = os.path.join(folder, base.replace("crucible", self.name))
        # dist/cli/main.js and dist/cli/truffle/main.js of a build.
        built = os.path.join(folder, self.name, base)
        for path in (beside, built):
            if path != words[-1] and (os.path.exists(path) or (not folder and shutil.which(path, path=environment.get("PATH")))):
                return [*words[:-1], path]
        raise errors.ExecutableNotFound(
            "CRUCIBLE_CLI is %s, and there is no `%s` next to it." % (shlex.join(words), self.name),
            hint="Set it to the path of `crucible` in an installation of %s, or pass executable=... ." % NPM_PACKAGE,
        )

    async def _start(self, args: Sequence[str]) -> "asyncio.subprocess.Process":
        # Takes as long to import as the rest of the package, and most programs do not need it.
        import asyncio

        words = self._words(args)
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                env=self._environment(),
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise stream.unstartable(words, error) from error

    def _read(self, args: Sequence[str], stdout: str, stderr: str, code: int) -> Document:
        if not stdout.strip():
            raise stream.unexplained(_shown(self.name, args), code, stderr)
        return self._document(args, stdout, stderr)

    def _document(self, args: Sequence[str], text: str, stderr: str) -> Document:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise errors.SchemaMismatch(
                "`%s` printed no JSON: %s" % (_shown(self.name, args), (text.strip() + " " + stderr.strip())[:500]),
                hint=UPGRADE,
            ) from error
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMAS[self.name]:
            raise errors.SchemaMismatch(
                "`%s` prints documents of %s, and this package reads %s."
                % (shlex.join(self.command()), schema or "an older version", SCHEMAS[self.name]),
                hint=UPGRADE,
            )
        assert isinstance(document, dict)
        if isinstance(document.get("error"), dict):
            raise error_of(document)
        return document


def error_of(document: Mapping[str, Any]) -> errors.CrucibleError:
    """The exception for a document of an error."""
    told = dict(document["error"])
    kind, message, hint = (told.pop(name, None) for name in ("kind", "message", "hint"))
    return ERRORS.get(str(kind), errors.CommandFailed)(
        str(message), hint=hint if hint is None else str(hint), details=told
    )


def arguments(options: Mapping[str, Any]) -> Tuple[str, ...]:
    """Words for the command line: ``{"min_vcpus": 4, "gpu_only": True}`` becomes ``--min-vcpus 4 --gpu-only``.

    None, False and empty lists are left out; the values of a list are joined by commas.
    """
    words: List[str] = []
    for name, value in options.items():
        if value is None or value is False or value == [] or value == ():
            continue
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple, set, frozenset)):
            words.append("%s=%s" % (flag, ",".join(str(one) for one in value)))
        else:
            words.append("%s=%s" % (flag, value))
    return tuple(words)


#: Remedy for documents of another version.
UPGRADE = "Install the same version of both: `pip install --upgrade truffle-aws crucible-ml` and `npm install --global %s`." % NPM_PACKAGE


def _split(source: str, text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise errors.UsageError(
            "%s %s cannot be read: %s." % (source, text, str(error).lower()), hint="Quote its words as for a shell."
        ) from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _shown(name: str, args: Sequence[str]) -> str:
    return shlex.join([name, *args])
