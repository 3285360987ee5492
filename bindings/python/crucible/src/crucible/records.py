"""The records of a job: log lines, events, artifacts, checkpoints, decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union, overload

from truffle.cli import Document

from . import html
from .calls import Stream
from .documents import read
from .plain import plain
from .status import instant

T = TypeVar("T")


@dataclass(frozen=True)
class LogLine:
    """A line of a job's log. `stream` is ``out``, ``err``, ``runner`` or ``gap`` for lost lines. `text` is as the
    program wrote it; ``str()`` of the line has no control codes."""

    attempt: int
    number: int
    at_ms: int
    stream: str
    text: str

    @property
    def at(self) -> Optional[datetime]:
        return instant(self.at_ms)

    def __str__(self) -> str:
        return plain(self.text)


def log_line(document: Mapping[str, Any]) -> LogLine:
    """From a line of ``crucible logs``."""
    return LogLine(document["attempt"], document["n"], document["t"], document["s"], document["m"])


class Logs(Stream[LogLine]):
    """The log of a job. Use it with ``for`` or ``async for``; ``str(job.logs())`` is its text, without control codes."""

    def lines(self) -> List[LogLine]:
        """All lines. With ``follow=True`` this waits until the job is over."""
        return list(self)

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self)

    def _repr_html_(self) -> str:
        return html.log(self.lines())


def log_lines(document: Document) -> Iterable[LogLine]:
    """Of a document of ``logs``, which has all lines, or with ``--follow`` one."""
    return [log_line(one) for one in document["lines"]] if "lines" in document else [log_line(document)]


@dataclass(frozen=True)
class Event:
    """Something that happened to a job."""

    at_ms: int
    attempt: Optional[int]
    kind: str
    text: str
    detail: Optional[str] = None

    @property
    def at(self) -> Optional[datetime]:
        return instant(self.at_ms)


@dataclass(frozen=True)
class Artifact:
    """A file that a job has kept.

    Attributes:
        path: Relative to the job's artifacts.
        sha256: None until the attempt that wrote it is settled.
        older_attempts: Earlier attempts with another version of it.
        local_path: Where it was downloaded; None if it was not.
    """

    path: str
    size_bytes: int
    sha256: Optional[str]
    attempt: int
    older_attempts: Tuple[int, ...] = ()
    local_path: Optional[str] = None


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of a job.

    Attributes:
        state: ``complete``, or ``settled`` and ``quiet``, which are provisional; None if its manifest cannot be read.
        evidence: Why it counts as complete, in one clause.
        is_good: After `Job.verify_checkpoints`, whether every file has its digest; otherwise None.
    """

    id: str
    step: int
    attempt: int
    is_step_known: Optional[bool] = None
    state: Optional[str] = None
    evidence: Optional[str] = None
    epoch: Optional[float] = None
    files: Optional[int] = None
    size_bytes: Optional[int] = None
    saved_at_ms: Optional[int] = None
    is_good: Optional[bool] = None
    bad_files: Tuple[Any, ...] = ()


def checkpoint_of(document: Mapping[str, Any]) -> Checkpoint:
    """From an entry of ``crucible checkpoints``."""
    return read(Checkpoint, {**document, "evidence": (document.get("evidence") or {}).get("text")})


@dataclass(frozen=True)
class DownloadedCheckpoint:
    """A checkpoint on this machine: ``resume_path`` is the value of ``CRUCIBLE_RESUME_FROM`` for a program."""

    checkpoint: Checkpoint
    folder: str
    files: int
    size_bytes: int
    resume_path: str
    damaged: Tuple[Any, ...] = ()


@dataclass(frozen=True)
class Decision:
    """A decision about a job and its inputs. `document` has alternatives, arithmetic and switch points."""

    number: int
    at_ms: int
    attempt: Optional[int]
    kind: str
    outcome: str
    text: str
    reasons: Tuple[str, ...] = ()
    risks: Tuple[str, ...] = ()
    replay: Optional[str] = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Why:
    """Every decision about a job. ``str()`` is one sentence for each."""

    decisions: Tuple[Decision, ...]
    ended: Optional[str] = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        lines = ["%d. %s" % (one.number, " ".join([one.text, *(reason + "." for reason in one.reasons)])) for one in self.decisions]
        return plain("\n".join([*lines, *([self.ended] if self.ended else [])]))


@dataclass(frozen=True)
class WhatIf:
    """The planner's decision from changed inputs. `was` and `now` have ``outcome``, ``text`` and ``place``."""

    decision: int
    is_unchanged: bool
    was: Mapping[str, Any]
    now: Mapping[str, Any]
    changes: Tuple[Any, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return "%s -> %s" % (self.was["text"], self.now["text"])


def why_of(document: Mapping[str, Any]) -> Why:
    """From a document of ``crucible why``."""
    decisions = tuple(read(Decision, {**one, "document": one}) for one in document["decisions"])
    return Why(decisions, document.get("ended"), document)


@dataclass(frozen=True)
class Spending:
    """A budget in whole micro-dollars; None means no limit."""

    limit_micro_usd: Optional[int]
    spent_micro_usd: int
    promised_micro_usd: int
    left_micro_usd: Optional[int]
    owner: Optional[str] = None

    @property
    def spent(self) -> float:
        """In dollars."""
        return self.spent_micro_usd / 1_000_000


@dataclass(frozen=True)
class Budget:
    """The budget of a month: the amount spent, and the amount reserved for open jobs."""

    month: str
    total: Spending
    owners: Tuple[Spending, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One check of `MLPlatform.doctor`; `status` is ``ok``, ``warning`` or ``error``."""

    check: str
    status: str
    message: str
    remedy: Optional[str] = None


@dataclass(frozen=True)
class Health:
    """Whether jobs can run, and each check."""

    is_healthy: bool
    findings: Tuple[Finding, ...]

    def __str__(self) -> str:
        return "\n".join(
            "%-8s %s: %s%s" % (one.status, one.check, one.message, " " + one.remedy if one.remedy else "") for one in self.findings
        )


class Listed(Sequence[T]):
    """A list that shows itself in notebooks."""

    def __init__(self, values: Iterable[T], as_html: Any) -> None:
        self._values = tuple(values)
        self._as_html = as_html

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...

    def __getitem__(self, at: Union[int, slice]) -> Union[T, Sequence[T]]:
        return self._values[at]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(self._values)

    def __repr__(self) -> str:
        return repr(list(self._values))

    def _repr_html_(self) -> str:
        html_text: str = self._as_html(self._values)
        return html_text
