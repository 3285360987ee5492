"""The return value of a function job, or its exception."""

from __future__ import annotations

import hashlib
import hmac
import json
import pickle
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from ..calls import Run, Steps
from ..errors import CommandFailed, JobFailed, NotFoundError, ResultError
from ..status import Status
from .crucible_function import RESULT

if TYPE_CHECKING:
    from ..job import Job


#: How the command line describes a file with a different digest.
DIFFERS = "differs from the job's file"

#: How a file describes a failure: the kind, and its fields.
_FIELDS = {None: (), "exception": ("type", "message", "traceback"), "result": ("message",), "python": ("message",)}

#: Bytes of the key that signs a result.
KEY_BYTES = 32


def new_key() -> str:
    """A key for one submission."""
    return secrets.token_hex(KEY_BYTES)


#: The attempt that kept a result, and the file.
Kept = Tuple[int, bytes]


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
        return int(document["artifacts"][0]["attempt"]), Path(folder, RESULT).read_bytes()


def read_result(job: Job[Any], status: Status, kept: Optional[Kept], *, key: Optional[str], is_trusted: bool = False) -> Steps[Any]:
    """The return value. Raises `JobFailed` with the details of a failure, and `ResultError` if the value cannot be read here.

    Args:
        kept: The answer of `fetch_result`.
        key: The key that the job got to sign its result; None if another session submitted it.
        is_trusted: Read the pickle without a key.
    """
    # An earlier attempt's failure says nothing about a later one.
    if kept is None or (status.state != "succeeded" and kept[0] != status.attempt):
        ended = yield from job._failure(status)
        if status.state == "succeeded":
            raise ResultError(
                "%s succeeded but kept no return value." % job.id,
                hint="Did its function end the program, with sys.exit(0) or os._exit(0), or replace it with os.exec? A function ends with `return`.",
            )
        raise ended
    signature, head, data, told = _parts(job, kept[1])
    if key is not None and not hmac.compare_digest(_signed(key, head, data), signature):
        raise _foreign(job)
    failure = yield from _failure(job, status, told)
    if failure is not None:
        raise failure
    if status.state != "succeeded":
        raise (yield from job._failure(status))
    if key is None and not is_trusted:
        raise ResultError(
            "%s was submitted by another session, which has the key to check that its return value is genuine." % job.id,
            hint="If you trust everyone who can write to the object store, read it with result(trust_pickle=True).",
        )
    return _unpickled(job, data, told)


def _parts(job: Job[Any], content: bytes) -> Tuple[bytes, bytes, bytes, Dict[str, Any]]:
    """Signature, head, pickle, and the parsed head."""
    try:
        signature, head, data = content.split(b"\n", 2)
        told = json.loads(head)
        fields = ("python", *_FIELDS[told["failure"]])
        if not all(isinstance(told[name], str) for name in fields):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _foreign(job) from None
    return signature, head, data, told


def _foreign(job: Job[Any]) -> ResultError:
    return ResultError(
        "The return value of %s is not signed by the job: another program may have written it." % job.id,
        hint="It is not read. Check who can write to the object store.",
    )


def _signed(key: str, head: bytes, data: bytes) -> bytes:
    return hmac.new(key.encode(), head + b"\n" + data, hashlib.sha256).hexdigest().encode()


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


def _unpickled(job: Job[Any], data: bytes, told: Dict[str, Any]) -> Any:
    try:
        return pickle.loads(data)
    except Exception as error:
        here = "%d.%d.%d" % sys.version_info[:3]
        hint = "Install the packages here that the function used there."
        if here.split(".")[:2] != told["python"].split(".")[:2]:
            hint = "The job ran Python %s, and this is Python %s: use the same version of both, and the same packages." % (told["python"], here)
        raise ResultError(
            "The return value of %s cannot be read here: %s: %s." % (job.id, type(error).__name__, str(error).rstrip(".")), hint=hint
        ) from error
