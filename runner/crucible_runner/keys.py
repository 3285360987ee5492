"""The keys of the object store (storage/layout.ts has the same keys for the other side)."""

import hashlib
import re
from typing import NamedTuple, Optional, Tuple

# A step has at most twelve digits, so that names sort as numbers do.
STEP_DIGITS_MAX = 12
STEP_MAX = 10**STEP_DIGITS_MAX - 1

# S3 allows keys of 1,024 bytes; this much is left for a path.
_PATH_BYTES_MAX = 700
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")

# Folder for the store's own temporary files, if it needs one.
TEMPORARY_FOLDER = ".tmp"


# Replaces the attempt number in the id of a checkpoint that the job got from another job before its first attempt.
COPIED_BY = 0


class CheckpointId(NamedTuple):
    """The identity of a checkpoint, from the name of its folder."""

    step: int
    attempt: int

    @property
    def age(self) -> Tuple[bool, int, int]:
        """Sorts from oldest to newest. A copy from another job is older than all checkpoints of the job itself, even when its step is
        higher: a fine-tuning job may count its steps from 0 again."""
        return (self.attempt != COPIED_BY, self.step, self.attempt)

    @property
    def name(self) -> str:
        return "%012d-%d" % (self.step, self.attempt)

    def document(self, is_step_known: bool = True) -> dict:
        """Returns the form used in beats, results and `restores.json`, which omits the flag for a known step."""
        document = {"id": self.name, "step": self.step, "attempt": self.attempt}
        return document if is_step_known else dict(document, isStepKnown=False)


def parse_checkpoint_id(name: str) -> Optional[CheckpointId]:
    match = re.fullmatch(r"(\d{12})-(0|[1-9]\d*)", name)
    return CheckpointId(int(match.group(1)), int(match.group(2))) if match else None


def manifest_name(revision: int = 1) -> str:
    return "manifest.json" if revision == 1 else "manifest.%d.json" % revision


def stored_at(checkpoint: CheckpointId, path: str, revision: int = 1) -> str:
    """Returns the path of a file that was uploaded with this revision of a checkpoint, relative to the job's checkpoint folder."""
    return "%s/%s/%s" % (checkpoint.name, "files" if revision == 1 else "files.%d" % revision, path)


def place_of(checkpoint: CheckpointId, path: str, revision: int = 1, may_be_key: bool = True) -> str:
    """Returns the same for paths that can be in a key, and another place for others."""
    encoded = path.encode("utf-8")
    is_key = may_be_key and len(encoded) <= _PATH_BYTES_MAX and not has_controls(path)
    return stored_at(checkpoint, path if is_key else ".long/" + hashlib.sha256(encoded).hexdigest(), revision)


def has_controls(path: str) -> bool:
    """Whether a path has line breaks or other control characters, which stores refuse or cannot list."""
    return _CONTROLS.search(path) is not None


def parse_range(name: str) -> Optional[Tuple[int, int]]:
    """Returns the first and last line number in the name of a log chunk, or None for another name."""
    match = re.fullmatch(r"(\d{12})-(\d{12})\.ndjson", name)
    return (int(match.group(1)), int(match.group(2))) if match else None


def range_name(first: int, last: int) -> str:
    return "%012d-%012d.ndjson" % (first, last)


class Keys:
    """Every key that one attempt reads or writes."""

    def __init__(self, job: str, attempt: int) -> None:
        self.job = "jobs/%s/" % job
        self.attempt = "%sattempts/%d/" % (self.job, attempt)
        self.order = self.attempt + "order.json"
        self.secrets = self.attempt + "secrets.sealed"
        self.claim = self.attempt + "claim.json"
        self.lease = self.attempt + "lease.json"
        self.limits = self.attempt + "limits/"
        self.drain = self.attempt + "drain.json"
        self.shorter_drains = self.attempt + "drains/"
        self.beat = self.attempt + "beat.json"
        self.result = self.attempt + "result.json"
        self.last_words = self.attempt + "last-words.txt"
        self.restores = self.attempt + "restores.json"
        self.logs = self.attempt + "logs/"
        self.checkpoints = self.job + "checkpoints/"
        self.artifacts = self.attempt + "artifacts/"
        self.outputs = self.attempt + "outputs.json"

    def bundle(self, sha256: str) -> str:
        return "%sbundle/%s.tar.gz" % (self.job, sha256)

    def log_chunk(self, first: int, last: int) -> str:
        return self.logs + range_name(first, last)

    def beat_of(self, attempt: int) -> str:
        """Returns the key of `beat.json` of any attempt of the job."""
        return "%sattempts/%d/beat.json" % (self.job, attempt)

    def restores_of(self, attempt: int) -> str:
        """Returns the key of `restores.json` of any attempt of the job."""
        return "%sattempts/%d/restores.json" % (self.job, attempt)

    def checkpoint(self, checkpoint: CheckpointId) -> str:
        return "%s%s/" % (self.checkpoints, checkpoint.name)

    def manifest(self, checkpoint: CheckpointId, revision: int = 1) -> str:
        return self.checkpoint(checkpoint) + manifest_name(revision)

    def stored_file(self, stored_at: str) -> str:
        """Returns the key of a file from `storedAt` of its manifest."""
        return self.checkpoints + stored_at

    def artifact(self, path: str) -> str:
        return self.artifacts + path


def check_key(key: str) -> None:
    """Raises `ValueError` unless the key is a relative path of plain segments."""
    segments = key.split("/")
    if (
        "\0" in key
        or any(segment in ("", ".", "..") for segment in segments)
        or segments[0] == TEMPORARY_FOLDER
    ):
        raise ValueError("invalid key %r: keys are relative paths such as jobs/a/b" % key)
