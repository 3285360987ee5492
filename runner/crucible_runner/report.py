"""The documents in which the runner reports on its attempt: its beat and its result."""

from typing import Optional

from .attempt import Attempt
from .context import Context
from .endings import Ending
from .retries import RETRIES

_TEXT_MAX = 500


def beat_facts(attempt: Attempt) -> dict:
    """Returns the fields of a beat that the timekeeper does not know."""
    context = attempt.context
    beat = {
        "attemptId": context.options.attempt_id,
        "phase": context.phases.now,
        "gpus": attempt.gpus.now,
        **_facts(attempt),
        "logLines": context.book.lines,
        "phases": context.phases.document(),
    }
    if attempt.rebalance.at_ms is not None:
        beat["rebalanceAtMs"] = attempt.rebalance.at_ms
    saving = attempt.keeper.saving.document() or attempt.checkpointing.saving()
    if saving is not None:
        beat["saving"] = saving
    retrying = RETRIES.document()
    if retrying is not None:
        text = context.book.redactor.clean_text(retrying["text"])
        beat["retrying"] = dict(retrying, text=text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + "...")
    return beat


def result_of(attempt: Attempt, ending: Ending, artifacts: list, warning: Optional[dict]) -> dict:
    """Returns the result; `warning` replaces the one about checkpoints."""
    facts = _facts(attempt)
    if warning is not None:
        facts["warning"] = warning
    return _result(attempt.context, ending, artifacts, facts)


def refusal(context: Context, ending: Ending) -> dict:
    """Returns the result of an attempt that could not begin."""
    facts = {"checkpoint": None, "restoredFrom": None, "noNoticeAtMs": None, **_progress(context)}
    return _result(context, ending, [], facts)


def _result(context: Context, ending: Ending, artifacts: list, facts: dict) -> dict:
    return {
        "version": 1,
        "attemptId": context.options.attempt_id,
        "outcome": ending.outcome,
        "reason": ending.reason,
        "message": context.book.redactor.clean_text(ending.message),
        "exitCode": ending.exit_code,
        "signal": ending.signal,
        **facts,
        "artifacts": artifacts,
        "phases": context.phases.document(),
        "logLines": context.book.lines,
        "finishedAtMs": context.clock.wall_ms(),
    }


def _facts(attempt: Attempt) -> dict:
    """Returns the fields that beats and results share."""
    progress = _progress(attempt.context)
    no_notice_at_ms = attempt.stopping.stop.no_notice_at_ms
    return {**progress, **attempt.tracking.facts(), **attempt.checkpointing.facts(), "noNoticeAtMs": no_notice_at_ms}


def _progress(context: Context) -> dict:
    document = context.progress.document()  # This reads the helper's file, which may have the first step.
    return {
        "progress": document,
        "firstStepAtMs": context.progress.first_step_at_ms,
        "firstStep": context.progress.first_step,
    }
