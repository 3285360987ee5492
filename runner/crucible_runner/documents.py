"""The documents of docs/reference/runner-protocol.md: their shapes, reading and writing. `core/documents.ts` is the other side."""

import json
import posixpath
import re
from typing import Any

from .keys import STEP_MAX, parse_checkpoint_id
from .notices import NOTICE_SHAPES
from .shapes import (
    DocumentError,
    Shape,
    boolean,
    list_of,
    literal,
    map_of,
    number,
    or_null,
    pattern,
    read_json,
    record,
    tagged,
    text,
    whole,
)

DRAIN_REASONS = ("cancelled", "migrated", "deadline", "budget", "superseded", "expired")
PHASES = ("starting", "fetching", "restoring", "pulling", "setup", "running", "draining", "finishing")
REBALANCE_ANSWERS = ("save", "move", "ignore")
SAVE_SIGNALS = ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT")
CHECKPOINT_STATES = ("complete", "settled", "quiet")
EVIDENCE_KINDS = ("declared", "marker", "format", "next", "end", "went-on", "quiet")
RESTORE_OUTCOMES = ("trying", "went-on", "failed")

# SHA-256 is computed per part of this size (core/job/checkpoint.ts).
PART_BYTES = 16 * 1024 * 1024

# Of a path in Linux (`intake/paths.ts`).
_PATH_MAX = 4095

_sha256 = pattern(r"[0-9a-f]{64}", "64 hexadecimal digits")
_whole_or_null = or_null(whole())


def inner_path(value: Any, at: str) -> str:
    """Checks a relative path that does not leave its folder."""
    path = text(value, at)
    if len(path) > _PATH_MAX:
        raise DocumentError("%s must be a path of at most %d characters, but has %d" % (at, _PATH_MAX, len(path)))
    segments = path.split("/")
    if path == "" or "\0" in path or any(segment in ("", ".", "..") for segment in segments):
        raise DocumentError("%s must be a relative path without '..', but is %r" % (at, path))
    return path


def inner_path_or_dot(value: Any, at: str) -> str:
    return "." if value == "." else inner_path(value, at)


def _checkpoint(value: Any, at: str) -> dict:
    checked = record({"id": text, "step": whole(), "attempt": whole()}, {"isStepKnown": boolean})(value, at)
    parsed = parse_checkpoint_id(checked["id"])
    if parsed is None or tuple(parsed) != (checked["step"], checked["attempt"]):
        raise DocumentError("%s.id must name step and attempt, but is %r" % (at, checked["id"]))
    return checked


def _stored_at(value: Any, at: str) -> str:
    """Checks a path within the job's checkpoint folder, in the files of a checkpoint."""
    path = inner_path(value, at)
    if re.match(r"\d{12}-(0|[1-9]\d*)/files(\.[1-9]\d*)?/", path) is None:
        raise DocumentError("%s must name a file of a checkpoint of the job, but is %r" % (at, path))
    return path


# The time of the last write, and the nanoseconds within that millisecond.
_TIME = {"modifiedAtMs": whole(), "modifiedNs": whole(0, 999_999)}


def _manifest_file(value: Any, at: str) -> dict:
    checked = record(
        {
            "path": inner_path,
            "sizeBytes": whole(),
            "parts": list_of(_sha256),
            "digest": _sha256,
            "mode": whole(),
        },
        optional={"storedAt": _stored_at, **_TIME, "isOlder": boolean, "linkedTo": inner_path},
    )(value, at)
    wanted = -(-checked["sizeBytes"] // PART_BYTES)
    if len(checked["parts"]) != wanted:
        raise DocumentError("%s.parts must have %d digests, but has %d" % (at, wanted, len(checked["parts"])))
    return checked


def _manifest_link(value: Any, at: str) -> dict:
    checked = record({"path": inner_path, "target": text})(value, at)
    target = checked["target"]
    led = posixpath.normpath(posixpath.join(posixpath.dirname(checked["path"]), target))
    if target == "" or "\0" in target or led.startswith(("/", "../")) or led == "..":
        raise DocumentError("%s.target must stay inside the checkpoint, but is %r" % (at, target))
    return checked


_BUDGET = record(
    {"microUsd": whole(), "priceMaxMicroUsdPerHour": whole()}, optional={"billedInStepsOfMs": whole(1)}
)
LIMITS = record({"seq": whole(), "deadlineAtMs": _whole_or_null, "budget": or_null(_BUDGET)})

ORDER = record(
    {
        "version": literal(1),
        "jobId": text,
        "jobName": text,
        "attempt": whole(1),
        "attemptId": text,
        "run": text,
        "setup": or_null(text),
        "image": or_null(text),
        "shmGiB": or_null(number),
        "env": map_of(text),
        "secrets": list_of(text),
        "bundle": or_null(record({"sha256": _sha256, "sizeBytes": whole()})),
        "inputs": list_of(record({"source": text, "path": inner_path})),
        "outputs": list_of(text),
        "checkpoint": record(
            {"directory": or_null(inner_path), "everyMs": whole(), "quietMs": whole(), "keep": whole(1)},
            optional={
                "complete": list_of(inner_path),
                "include": list_of(inner_path),
                "exclude": list_of(inner_path),
                "signal": literal(*SAVE_SIGNALS),
            },
        ),
        "limits": LIMITS,
        "leaseMs": whole(),
        "drainMs": whole(),
        "powerOffMs": whole(),
        "startWithinMs": whole(),
        "beatMs": whole(1),
        "notice": tagged("kind", NOTICE_SHAPES),
        "issuedAtMs": whole(),
    },
    optional={
        "imageLogin": record({"username": text, "secret": text}),
        "onRebalance": literal(*REBALANCE_ANSWERS),
        "registryMs": whole(),
        "requiresOutputs": boolean,
        "shell": text,
        "artifactGiBMax": whole(1),
        "usableUntilMs": whole(),
        "queueMs": whole(),
        "runMsMax": whole(),
    },
)

# Provider ids have many forms; none contains a space.
MACHINE_ID = r"[!-~]{1,255}"
_MACHINE_NAME = pattern(MACHINE_ID, "1 to 255 printable ASCII characters without spaces")
CLAIM = record({"machine": _MACHINE_NAME}, optional={"send": _MACHINE_NAME})

SEALED = record({"v": literal(1), "nonce": text, "text": text, "tag": text})

_METERED = record({"toAtMs": whole(), "costMicroUsd": whole(), "priceMicroUsdPerHour": whole()})
LEASE = record(
    {"seq": whole(), "answersBeat": whole(), "ttlMs": whole()},
    optional={"usableUntilMs": whole(), "spentMicroUsd": whole(), "metered": _METERED, "grant": SEALED},
)

GRANT = record(
    {"keyId": text, "secret": text, "sessionToken": or_null(text), "expiresAtMs": _whole_or_null}
)

DRAIN = record(
    {"reason": literal(*DRAIN_REASONS, "interrupted"), "windowMs": whole(), "requestedAtMs": whole()},
    optional={"seq": whole(1)},
)

_PROGRESS = record(
    {"step": _whole_or_null, "stepsTotal": _whole_or_null, "loss": or_null(number), "atMs": whole()},
    optional={
        "epoch": number,
        "epochsTotal": whole(),
        "batch": whole(),
        "batchesTotal": whole(),
        "percent": number,
    },
)

_GPU = record(
    {
        "index": whole(),
        "name": text,
        "utilizationPercent": number,
        "memoryUsedMiB": number,
        "memoryTotalMiB": number,
    },
    optional={"memoryPeakMiB": number},
)

_PHASES = list_of(record({"name": literal(*PHASES), "startedAtMs": whole(), "durationMs": whole()}))

_TIMES = {"firstStepAtMs": _whole_or_null, "firstStep": _whole_or_null, "noNoticeAtMs": _whole_or_null}

_state = literal(*CHECKPOINT_STATES)
_kind = pattern(r"[a-z]+(-[a-z]+)*", "lower-case words with dashes")
_CHECKPOINT_NEWS = {
    "restoredBecause": text,
    "checkpointState": _state,
    "warning": or_null(record({"kind": _kind, "text": text, "sinceMs": whole()})),
}

_SAVING = record(
    {
        "what": literal("artifacts", "checkpoint"),
        "filesDone": whole(),
        "filesTotal": whole(),
        "bytesDone": whole(),
        "bytesTotal": whole(),
    },
    optional={"bytesRead": whole()},
)

# Form of a run id, which an experiment tracker makes.
RUN_ID = r"[^\s\x00-\x1f\x7f-\x9f]{1,128}"
_TRACKED = record(
    {"kind": _kind, "runId": pattern(RUN_ID, "1 to 128 printable characters without spaces")},
    optional={"url": pattern(r"https?://[!-~]{1,2000}", "an address")},
)
_TRACKERS = {"trackers": list_of(_TRACKED)}

BEAT = record(
    {
        "attemptId": text,
        "seq": whole(1),
        "phase": literal(*PHASES),
        "progress": or_null(_PROGRESS),
        "gpus": list_of(_GPU),
        "checkpoint": or_null(_checkpoint),
        "restoredFrom": or_null(_checkpoint),
        "limitsSeq": whole(),
        "leaseSeq": whole(),
        "logLines": whole(),
        "clockMs": whole(),
        "uptimeMs": whole(),
    },
    optional=dict(
        _TIMES,
        **_CHECKPOINT_NEWS,
        **_TRACKERS,
        phases=_PHASES,
        rebalanceAtMs=whole(),
        retrying=record({"text": text, "sinceMs": whole()}),
        saving=_SAVING,
        stalledSinceMs=whole()
    ),
)

_RESTORE = record(
    {
        "checkpoint": _checkpoint,
        "revision": whole(1),
        "state": _state,
        "why": text,
        "atMs": whole(),
        "outcome": literal(*RESTORE_OUTCOMES),
        "message": or_null(text),
    }
)
RESTORES = record({"version": literal(1), "attemptId": text, "restores": list_of(_RESTORE)})

_TREE_ENTRY = record({"path": inner_path, "mode": whole()}, _TIME)
OUTPUTS = record(
    {
        "version": literal(1),
        "files": list_of(_TREE_ENTRY),
        "folders": list_of(_TREE_ENTRY),
        "links": list_of(_manifest_link),
    }
)

MANIFEST = record(
    {
        "version": literal(1),
        "jobId": text,
        "attempt": whole(),
        "revision": whole(1),
        "state": _state,
        "evidence": record({"kind": literal(*EVIDENCE_KINDS), "text": text}),
        "step": whole(),
        "isStepKnown": boolean,
        "createdAtMs": whole(),
        "savedAtMs": whole(),
        "totalBytes": whole(),
        "files": list_of(_manifest_file),
        "resumePath": inner_path_or_dot,
    },
    optional={
        "epoch": whole(),
        "saveMs": whole(),
        "links": list_of(_manifest_link),
        "folders": list_of(_TREE_ENTRY),
        "copiedFrom": record({"jobId": text, "checkpoint": text}),
        "uploadMs": whole(),
        "sha256": _sha256,
    },
)

HELPER_PROGRESS = record(
    {"step": whole(0, STEP_MAX)}, optional={"total": _whole_or_null, "loss": or_null(number)}
)
HELPER_SAVED = record({"path": inner_path_or_dot, "step": whole(0, STEP_MAX)})


def is_utf8(name: str) -> bool:
    """Returns False for a file name in another encoding, which no document can represent."""
    return name == name.encode("utf-8", "replace").decode("utf-8")


def parse(shape: Shape, body: bytes) -> Any:
    """Parses the document in `body`. Raises `DocumentError`; unknown fields are dropped."""
    try:
        value = read_json(body.decode("utf-8"))
    except ValueError as error:
        raise DocumentError("it is not JSON: %s" % error) from error
    return shape(value, "")


def dump(document: Any) -> bytes:
    """Half of a surrogate pair, which JSON of strangers can contain, becomes a question mark: a beat or result must never fail for a text."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
