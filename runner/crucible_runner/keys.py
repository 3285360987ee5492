"""The keys of the object store (storage/layout.ts has the same for the other side)."""

import re
from typing import NamedTuple, Optional, Tuple

# A step has at most twelve digits, so that names sort as numbers do.
STEP_DIGITS_MAX = 12
STEP_MAX = 10**STEP_DIGITS_MAX - 1

# What a store keeps for itself, if it needs a place.
TEMPORARY_FOLDER = ".tmp"


# Stands for an attempt in the id of a checkpoint that the job got from another job before its first attempt.
COPIED_BY = 0


class CheckpointId(NamedTuple):
    """A checkpoint by its folder's name."""

    step: int
    attempt: int

    @property
    def age(self) -> Tuple[bool, int, int]:
        """Sorts from oldest to newest. A copy from another job is older than all that the job saved itself, also when its step is
        higher: a job that fine-tunes may count its steps from 0 again."""
        return (self.attempt != COPIED_BY, self.step, self.attempt)

    @property
    def name(self) -> str:
        return "%012d-%d" % (self.step, self.attempt)

    def document(self) -> dict:
        """As it stands in beats and results."""
        return {"id": self.name, "step": self.step, "attempt": self.attempt}


def parse_checkpoint_id(name: str) -> Optional[CheckpointId]:
    match = re.fullmatch(r"(\d{12})-(0|[1-9]\d*)", name)
    return CheckpointId(int(match.group(1)), int(match.group(2))) if match else None


def parse_range(name: str) -> Optional[Tuple[int, int]]:
    """The first and last line number in the name of a log chunk, or None when it is no chunk."""
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
        self.beat = self.attempt + "beat.json"
        self.result = self.attempt + "result.json"
        self.logs = self.attempt + "logs/"
        self.checkpoints = self.job + "checkpoints/"
        self.artifacts = self.attempt + "artifacts/"

    def bundle(self, sha256: str) -> str:
        return "%sbundle/%s.tar.gz" % (self.job, sha256)

    def log_chunk(self, first: int, last: int) -> str:
        return self.logs + range_name(first, last)

    def manifest(self, checkpoint: CheckpointId) -> str:
        return "%s%s/manifest.json" % (self.checkpoints, checkpoint.name)

    def checkpoint_file(self, checkpoint: CheckpointId, path: str) -> str:
        return "%s%s/files/%s" % (self.checkpoints, checkpoint.name, path)

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
        raise ValueError("%r is no key: keys are relative paths such as jobs/a/b" % key)
