"""The manifest of a checkpoint: how it is written, which is believed, and whose it is."""

import hashlib
from typing import Any, Dict

from .clock import in_words
from .documents import MANIFEST, dump, parse
from .keys import CheckpointId
from .looks import Seen
from .scan import Selection
from .shapes import DocumentError
from .store import Store, StoreError
from .transfer import Corrupt, FileUp

# What two manifests of the very same checkpoint agree in, whoever wrote them and when.
_OF_CONTENT = ("files", "links", "resumePath")


class Taken(Exception):
    """The checkpoint's place in the store is another writer's, who was first."""


def content_of(selection: Selection, files: Dict[str, FileUp]) -> dict:
    """What the manifest tells of the files, once they are up."""
    content = {
        "totalBytes": sum(file.size for file in files.values()),
        "files": [
            {
                "path": path,
                "sizeBytes": file.size,
                "parts": file.parts(),
                "digest": file.digest(),
                "mode": selection.files[path].mode,
            }
            for path, file in sorted(files.items())
        ],
        "resumePath": selection.resume_path,
    }
    if selection.links:
        content["links"] = [{"path": path, "target": to} for path, to in sorted(selection.links.items())]
    return content


def first_revision(seen: Seen, quiet_ms: int) -> dict:
    """What the first manifest of a checkpoint says of its state."""
    evidence = {"kind": "quiet", "text": "nothing changed for %s" % in_words(quiet_ms)}
    if seen.is_declared:
        evidence = {"kind": "declared", "text": "the program declared it"}
    newest_ns = max((stamp.modified_ns for stamp in seen.selection.files.values()), default=0)
    return {
        "revision": 1,
        "state": "complete",
        "evidence": evidence,
        "savedAtMs": max(0, newest_ns // 1_000_000),
    }


def manifest_bytes(document: dict) -> bytes:
    """The manifest as it is put: the digest of all that stands before it comes last."""
    before = dump(document)[:-1] + b","
    return before + dump({"sha256": hashlib.sha256(before).hexdigest()})[1:]


def read_manifest(body: bytes, job_id: str, checkpoint: CheckpointId) -> Any:
    """The manifest in `body`. Raises `DocumentError` or `Corrupt` when it is damaged or another checkpoint's. Runners of before
    wrote no digest: theirs is believed without one."""
    manifest = parse(MANIFEST, body)
    before = body.rpartition(b'"sha256"')[0]
    if "sha256" in manifest and hashlib.sha256(before).hexdigest() != manifest["sha256"]:
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
    """Puts the manifest. One that is there already is as good when it tells of the very same files: it is this one, put by a try
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
