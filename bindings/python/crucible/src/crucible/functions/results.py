"""The return value of a function job, or its exception."""

from __future__ import annotations

import hashlib
import hmac
import json
import pickle
import re
import secrets
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional

from ..calls import Run, Steps
from ..errors import CommandFailed, JobFailed, NotFoundError, ResultError
from ..plain import plain
from ..status import Status
from .crucible_function import RESULT, VALUE
from .values import Unreadable, decode

if TYPE_CHECKING:
    from ..job import Job


#: How the command line describes a file with a different digest.
DIFFERS = "differs from the job's file"

#: How a file describes a failure: the kind, and its fields.
_FIELDS = {None: (), "exception": ("type", "message", "traceback"), "result": ("message",), "python": ("message",)}

#: The secret with which the runner signs a result (`runner/crucible_runner/signing.py`). No command of the job gets it.
KEY = "FUNCTION_RESULT_SIGNING_KEY"

#: The secret of jobs that version 0.1.0 submitted: their functions sign.
OLD_KEY = "FUNCTION_RESULT_KEY"

#: Bytes of the key that signs a result.
KEY_BYTES = 32

#: The file of the runner next to that of the function.
SIGNATURE = "signature"

_OLD_SIGNATURE = re.compile(b"[0-9a-f]{64}")


def new_key() -> str:
    """A key for one submission."""
    return secrets.token_hex(KEY_BYTES)


@dataclass(frozen=True)
class Kept:
    """A result among the artifacts: the attempt that kept it, and the files of its function and of its runner."""

    attempt: int
    content: bytes
    signature: bytes = b""


def fetch_result(job: Job[Any]) -> Steps[Optional[Kept]]:
    """The result file of a job; None if it has none, as the jobs that run no function."""
    with tempfile.TemporaryDirectory(prefix="crucible-") as folder:
        try:
            document = yield Run(("artifacts", job.id, "--only", RESULT, "--download", folder))
        except NotFoundError:
            return None
        except CommandFailed as error:
            failed = error.details.get("failed") or ()
            if not any(DIFFERS in str(one.get("reason")) for one in failed):
                raise
            raise ResultError(
                "The stored return value of %s differs from what the job recorded: it was overwritten, or the store is damaged."
                % job.id,
                hint="It is not read. Check who can write to the object store.",
            ) from error
        attempts = {str(one["path"]): int(one["attempt"]) for one in document["artifacts"]}
        path = RESULT if RESULT in attempts else "%s/%s" % (RESULT, VALUE)
        if path not in attempts:
            return None
        signed = Path(folder, RESULT, SIGNATURE)
        signature = signed.read_bytes() if path != RESULT and signed.is_file() else b""
        return Kept(attempts[path], Path(folder, path).read_bytes(), signature)


def read_result(job: Job[Any], status: Status, kept: Optional[Kept], *, key: Optional[str], is_trusted: bool = False) -> Steps[Any]:
    """The return value. Raises `JobFailed` with the details of a failure, and `ResultError` if the value cannot be read here.

    Args:
        kept: The answer of `fetch_result`.
        key: The key that the job's runner got to sign its result; None if another session submitted it.
        is_trusted: Read a pickle too.
    """
    # An earlier attempt's failure says nothing about a later one.
    if kept is None or (status.state != "succeeded" and kept.attempt != status.attempt):
        ended = yield from job._failure(status)
        if status.state == "succeeded":
            raise ResultError(
                "%s succeeded but kept no return value." % job.id,
                hint="Did its function end the program, with sys.exit(0) or os._exit(0), or replace it with os.exec? A function ends with `return`.",
            )
        raise ended
    found = _parts(job, kept, key)
    failure = yield from _failure(job, status, found.told)
    if failure is not None:
        raise failure
    if status.state != "succeeded":
        raise (yield from job._failure(status))
    if found.told["form"] == "data":
        return _decoded(job, found)
    if not is_trusted:
        reason = plain(found.told["reason"]).rstrip(".")
        raise ResultError(
            "The return value of %s is not read: it is a pickle, because %s. A pickle can run any program on this computer." % (job.id, reason),
            hint="Return plain data, arrays, tensors, tables or your own dataclasses. result(trust_pickle=True) loads the pickle: use it only "
            "if you trust the job, every program that it ran, and everyone who can write to the object store.",
        )
    return _unpickled(job, found)


class _Parts(NamedTuple):
    told: Dict[str, Any]
    data: bytes


def _parts(job: Job[Any], kept: Kept, key: Optional[str]) -> _Parts:
    """The parsed head, and the value. Raises `ResultError` for what another program may have written."""
    try:
        first, _, rest = kept.content.partition(b"\n")
        if _OLD_SIGNATURE.fullmatch(first):
            head, data = rest.split(b"\n", 1)
            is_signed = key is None or hmac.compare_digest(_signed(key, rest), first)
            told = {**_told(head), "form": "pickle", "reason": "an older version of crucible-ml wrote it"}
        else:
            head, data = kept.content.split(b"\n", 1)
            is_signed = key is None or hmac.compare_digest(_signed(key, signed_text(kept.attempt, kept.content)), kept.signature)
            told = _told(head)
            if told["failure"] is None and told.get("form") != "data" and (told.get("form") != "pickle" or not isinstance(told.get("reason"), str)):
                raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _foreign(job) from None
    if not is_signed:
        raise _foreign(job)
    return _Parts(told, data)


def _told(head: bytes) -> Dict[str, Any]:
    told: Dict[str, Any] = json.loads(head)
    if not all(isinstance(told[name], str) for name in ("python", *_FIELDS[told["failure"]])):
        raise TypeError
    return told


def _foreign(job: Job[Any]) -> ResultError:
    return ResultError(
        "The return value of %s is not signed by the job's machine: another program may have written it." % job.id,
        hint="It is not read. Check who can write to the object store, and that the workers have the version of this package.",
    )


def signed_text(attempt: int, content: bytes) -> bytes:
    """The text that a runner signs."""
    return b"crucible-function-result\n%d\n%s" % (attempt, hashlib.sha256(content).hexdigest().encode())


def _signed(key: str, text: bytes) -> bytes:
    return hmac.new(key.encode(), text, hashlib.sha256).hexdigest().encode()


def _decoded(job: Job[Any], found: _Parts) -> Any:
    try:
        return decode(found.data)
    except Unreadable as error:
        raise ResultError("The return value of %s cannot be read here: %s." % (job.id, plain(str(error)))) from None
    except Exception as error:
        raise ResultError(
            "The return value of %s cannot be read here: %s: %s." % (job.id, type(error).__name__, plain(str(error)).rstrip(".")),
            hint="It is damaged, or another program wrote it.",
        ) from error


def _failure(job: Job[Any], status: Status, told: Dict[str, Any]) -> Steps[Optional[JobFailed]]:
    kind = told["failure"]
    if kind is None:
        return None
    log = "\n".join(line["m"] for line in (yield Run(("logs", job.id, "--tail=20")))["lines"])
    details = {"status": status, "exception_type": told.get("type"), "traceback": told.get("traceback"), "log": log}
    if kind == "exception":
        text = "%s failed with %s: %s" % (job.id, told["type"], told["message"])
        return JobFailed("%s\n\nOn the machine, with Python %s:\n%s" % (text, told["python"], told["traceback"]), None, details)
    hint = "Use an image or a machine with Python %d.%d." % sys.version_info[:2] if kind == "python" else "Return plain data, or save it to CRUCIBLE_OUTPUT_DIR."
    return JobFailed("%s failed: %s." % (job.id, str(told["message"]).rstrip(".")), hint, details)


def _unpickled(job: Job[Any], found: _Parts) -> Any:
    told = found.told
    try:
        return pickle.loads(found.data)
    except Exception as error:
        here = "%d.%d.%d" % sys.version_info[:3]
        hint = "Install the packages here that the function used there."
        if here.split(".")[:2] != told["python"].split(".")[:2]:
            hint = "The job ran Python %s, and this is Python %s: use the same version of both, and the same packages." % (told["python"], here)
        raise ResultError(
            "The return value of %s cannot be read here: %s: %s." % (job.id, type(error).__name__, str(error).rstrip(".")), hint=hint
        ) from error
