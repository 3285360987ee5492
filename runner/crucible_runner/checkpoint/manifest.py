"""The manifest of a checkpoint: how it is written, when it is valid, and who wrote it."""

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

# Fields that are equal in two manifests of the same checkpoint, regardless of writer and time.
_OF_CONTENT = ("files", "folders", "links", "resumePath")


class Taken(Exception):
    """Another writer was first to take the checkpoint's place in the store."""


def entry_of(path: str, file: FileUp, stamp: FileStamp) -> dict:
    """Builds the manifest entry of an uploaded file."""
    return {
        "path": path,
        "sizeBytes": file.size,
        "parts": file.parts(),
        "digest": file.digest(),
        "mode": stamp.mode,
        **time_of(stamp.modified_ns),
    }


def time_of(modified_ns: int) -> dict:
    """Returns the fields for the time of the last write; JSON numbers are too short for nanoseconds since 1970."""
    return {"modifiedAtMs": max(0, modified_ns // 1_000_000), "modifiedNs": max(0, modified_ns) % 1_000_000}


def nanoseconds_of(entry: dict) -> int:
    """Returns the time of an entry with `modifiedAtMs`."""
    return entry["modifiedAtMs"] * 1_000_000 + entry.get("modifiedNs", 0)


def shape_of_manifest(manifest: dict) -> Shape:
    """Returns the files that the save wrote, according to the manifest: those stored with it, without files from before."""
    own = CheckpointId(manifest["step"], manifest["attempt"]).name + "/"
    sizes = {
        entry["path"]: entry["sizeBytes"]
        for entry in manifest["files"]
        if entry.get("storedAt", own).startswith(own) and not entry.get("isOlder", False) and not is_record(entry["path"])
    }
    return shape_of(sizes)


def manifest_bytes(document: dict) -> bytes:
    """Serializes the manifest. The last field is the digest of everything before it."""
    before = dump(document)[:-1] + b","
    return before + dump({"sha256": hashlib.sha256(before).hexdigest()})[1:]


def read_manifest(body: bytes, job_id: str, checkpoint: CheckpointId) -> Any:
    """Parses the manifest in `body`. Raises `DocumentError` or `Corrupt` when it is damaged or belongs to another checkpoint."""
    manifest = parse(MANIFEST, body)
    before = body.rpartition(b'"sha256"')[0]
    if hashlib.sha256(before).hexdigest() != manifest.get("sha256"):
        raise Corrupt("its manifest is damaged")
    if (manifest["jobId"], manifest["step"], manifest["attempt"]) != (job_id,) + tuple(checkpoint):
        raise Corrupt("its manifest belongs to another checkpoint")
    _check_places(manifest)
    return manifest


def _check_places(manifest: Any) -> None:
    """Raises `Corrupt` when two entries have one place, or one is below another that is no folder. No runner writes such a manifest."""
    leaves = [each["path"] for each in [*manifest["files"], *manifest.get("links", [])]]
    taken = set(leaves)
    if len(taken) < len(leaves):
        raise Corrupt("its manifest has two entries with one path")
    folders = {each["path"] for each in manifest.get("folders", [])}
    for path in [*leaves, *folders]:
        while "/" in path:
            path = path.rpartition("/")[0]
            folders.add(path)
    if not taken.isdisjoint(folders):
        raise Corrupt("its manifest has a file or a link in the place of a folder")


def is_taken(store: Store, key: str) -> bool:
    """Whether the store reports the key as taken. A key that cannot be read now counts as free, and `put_manifest` decides."""
    try:
        return store.get(key) is not None
    except StoreError:
        return False


def put_manifest(store: Store, key: str, body: bytes) -> None:
    """Puts the manifest. An existing manifest with exactly the same files is accepted: an earlier try whose answer was lost, or an earlier
    start, has put it. Raises `Taken` when the files differ."""
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
