"""The manifest of a checkpoint: how it is written, which is believed, and whose it is."""

import hashlib
from typing import Any

from ..documents import MANIFEST, dump, parse
from ..keys import CheckpointId
from ..shapes import DocumentError
from ..store.base import Store, StoreError
from ..store.transfer import Corrupt, FileUp
from .generations import Shape, shape_of
from .names import is_record
from .scan import FileStamp

# What two manifests of the very same checkpoint agree in, whoever wrote them and when.
_OF_CONTENT = ("files", "links", "resumePath")


class Taken(Exception):
    """The checkpoint's place in the store is another writer's, who was first."""


def entry_of(path: str, file: FileUp, stamp: FileStamp) -> dict:
    """What the manifest says about an uploaded file."""
    return {
        "path": path,
        "sizeBytes": file.size,
        "parts": file.parts(),
        "digest": file.digest(),
        "mode": stamp.mode,
        "modifiedAtMs": max(0, stamp.modified_ns // 1_000_000),
    }


def shape_of_manifest(manifest: dict) -> Shape:
    """What the save wrote, as far as the manifest tells: the files that are stored with it, not those that were there before."""
    own = CheckpointId(manifest["step"], manifest["attempt"]).name + "/"
    sizes = {
        entry["path"]: entry["sizeBytes"]
        for entry in manifest["files"]
        if entry.get("storedAt", own).startswith(own) and not is_record(entry["path"])
    }
    return shape_of(sizes)


def manifest_bytes(document: dict) -> bytes:
    """The manifest as it is put: the digest of all that stands before it comes last."""
    before = dump(document)[:-1] + b","
    return before + dump({"sha256": hashlib.sha256(before).hexdigest()})[1:]


def read_manifest(body: bytes, job_id: str, checkpoint: CheckpointId) -> Any:
    """The manifest in `body`. Raises `DocumentError` or `Corrupt` when it is damaged or another checkpoint's."""
    manifest = parse(MANIFEST, body)
    before = body.rpartition(b'"sha256"')[0]
    if hashlib.sha256(before).hexdigest() != manifest.get("sha256"):
        raise Corrupt("its manifest is damaged")
    if (manifest["jobId"], manifest["step"], manifest["attempt"]) != (job_id,) + tuple(checkpoint):
        raise Corrupt("its manifest belongs to another checkpoint")
    return manifest


def is_taken(store: Store, key: str) -> bool:
    """As far as the store tells. One that cannot be read now may still be written to, and `put_manifest` decides."""
    try:
        return store.get(key) is not None
    except StoreError:
        return False


def put_manifest(store: Store, key: str, body: bytes) -> None:
    """Puts the manifest. An existing one is as good when it lists exactly the same files: it is this one, put by a try
    whose answer was lost, or that of an earlier start. Raises `Taken` when it does not."""
    if store.put_if_absent(key, body):
        return
    standing = store.get(key)
    if standing is None or not _is_of_the_same(standing, body):
        raise Taken("another manifest was put at %s first" % key)


def _is_of_the_same(standing: bytes, body: bytes) -> bool:
    ours = parse(MANIFEST, body)
    try:
        theirs = read_manifest(standing, ours["jobId"], CheckpointId(ours["step"], ours["attempt"]))
    except (Corrupt, DocumentError):
        return False
    return all(theirs.get(name) == ours.get(name) for name in _OF_CONTENT)
