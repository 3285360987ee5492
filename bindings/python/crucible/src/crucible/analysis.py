"""Analysis and rehearsal of a program before it is submitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Tuple

from . import html
from .documents import camel, read


@dataclass(frozen=True)
class AnalysisFinding:
    """One thing that the source says. `confidence` is from 0 to 1, `evidence` has file, line and text."""

    value: Any
    confidence: float = 0.0
    evidence: Tuple[Any, ...] = ()
    missing: Any = None
    how: Any = None


@dataclass(frozen=True)
class Analysis:
    """A training script, read without running it. ``analysis["can_resume"].value`` is one finding.

    Attributes:
        kind: ``training``, ``not-training`` or ``unreadable``.
        findings: By name, such as ``saveKind`` or ``canResume``.
        obstacles: Where it could not be read, each with file, line and message.
    """

    kind: str
    entry: Optional[str]
    findings: Mapping[str, AnalysisFinding]
    obstacles: Tuple[Mapping[str, Any], ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> AnalysisFinding:
        return self.findings[name] if name in self.findings else self.findings[camel(name)]

    def _repr_html_(self) -> str:
        rows = [
            (html.text(name), html.text(one.value), "%.0f %%" % (100 * one.confidence), html.text(_where(one)))
            for name, one in self.findings.items()
            if one.value is not None
        ]
        return html.table(("finding", "value", "sure", "where"), rows)


def analysis_of(document: Mapping[str, Any]) -> Analysis:
    """From a document of ``crucible analyze``."""
    findings = {name: read(AnalysisFinding, one) for name, one in (document.get("findings") or {}).items() if isinstance(one, Mapping)}
    return Analysis(document["kind"], document.get("entry"), findings, tuple(document.get("obstacles") or ()), document)


def _where(finding: AnalysisFinding) -> Optional[str]:
    first = finding.evidence[0] if finding.evidence else None
    return "%s:%s" % (first.get("file"), first.get("line")) if isinstance(first, Mapping) else None


@dataclass(frozen=True)
class Rehearsal:
    """Whether a program survives interruptions.

    Attributes:
        summary: The verdict in a sentence.
        checks: What was checked, each with ``name``, ``outcome`` and ``text``.
        changes: What to change, each with ``text``, and ``yaml`` for the job file.
    """

    name: str
    survives: bool
    summary: str
    checks: Tuple[Any, ...] = ()
    changes: Tuple[Any, ...] = ()
    took_ms: int = 0

    def __str__(self) -> str:
        return "\n".join([self.summary, *("- %s" % one["text"] for one in self.changes)])
