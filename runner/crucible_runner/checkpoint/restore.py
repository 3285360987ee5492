"""Downloads the newest good checkpoint of the job, or the previous one when a program cannot resume from it."""

import errno
import os
import posixpath
import stat
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from ..amounts import in_bytes
from ..clock import Clock
from ..keys import CheckpointId, Keys, parse_checkpoint_id, stored_at
from ..paths import remove_tree
from ..process.user import give
from ..shapes import DocumentError
from ..store.base import Store
from ..store.retry import Patience, Remark, Trouble, persist
from ..store.transfer import MODE, Corrupt, FileDown, transfer_files
from .evidence import COMPLETE, QUIET, SETTLED
from .experience import read_failed
from .generations import Shape
from .manifest import nanoseconds_of, read_manifest, shape_of_manifest
from .names import is_database, unit_of
from .pace import Past

# A provisional checkpoint that is supported only by quiet files is tried when it was saved at least this many quiet times after the complete
# one.
_WORTH_QUIETS = 2
# A settled checkpoint with less than this share of the newest complete one's size does not rank before it.
_SETTLED_SHARE = 0.5
# The log announces the restore of older checkpoints of this size: it takes some seconds.
_LARGE_BYTES = 1 << 28
# Number of newest complete checkpoints that define the expected shape of a save; older ones may differ. Fewer or more may be kept.
_COMPARED = 3

# Files written this far apart also get distinct entry times. The system clock for entry times has ticks of _TICK_SECONDS.
_APART_MS = 500
_TICK_SECONDS = 0.01


# Names that a file system does not take.
_OF_NAMES = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ELOOP)


class Restored(NamedTuple):
    checkpoint: CheckpointId
    resume_path: str
    """Relative to the checkpoint directory."""
    revision: int = 1
    state: str = COMPLETE
    why: str = ""
    """A clause for people."""
    is_step_known: bool = True
    """False when the number in the id is only a running number."""
    entries: Sequence[dict] = ()
    """Its files as manifest entries, each with `storedAt`."""

    @property
    def is_whole(self) -> bool:
        return is_whole(self.state, self.entries)


class StoredCheckpoints(NamedTuple):
    """The checkpoints found in the store."""

    restored: Optional[Restored]
    own_steps: List[int]
    """Steps with a checkpoint of this attempt in the store, written by an earlier runner."""
    begun_steps: Sequence[int] = ()
    """Steps with files in the store, but no manifest yet: the request that writes it may be in progress."""
    past: Past = Past()
    newest: Optional[CheckpointId] = None
    """The highest id in the store, whatever its state."""


class Candidate(NamedTuple):
    """A checkpoint that could be restored."""

    checkpoint: CheckpointId
    manifest: dict

    @property
    def state(self) -> str:
        return self.manifest["state"]

    @property
    def words(self) -> str:
        return "%s, %s" % (_WORDS[self.state], self.manifest["evidence"]["text"])


_WORDS = {COMPLETE: "complete", SETTLED: "provisional", QUIET: "provisional"}


def rank(candidates: Sequence[Candidate], failed: Set[CheckpointId], quiet_ms: int) -> List[Candidate]:
    """Ranks all candidates, given newest first, by the order in which to restore them.

    A complete checkpoint is always accepted. A provisional one ranks before it when it has settled, or when it resembles a complete one
    and has saved some time. A checkpoint on which a program failed comes last, if it is complete or has only databases, which are copied
    whole; then settled ones that are small: these serve when all others are damaged.
    """
    trusted = [each for index, each in enumerate(candidates) if _is_trusted(each, candidates[index + 1 :], quiet_ms)]
    fresh = [each for each in trusted if each.checkpoint not in failed]
    small = [each for each in candidates if each.state == SETTLED and each not in trusted and each.checkpoint not in failed]
    return (fresh or [each for each in trusted if is_whole(each.state, each.manifest["files"])][:1]) + small


def _is_trusted(candidate: Candidate, older: Sequence[Candidate], quiet_ms: int) -> bool:
    if candidate.state == COMPLETE:
        return True
    complete = [each for each in older if each.state == COMPLETE and not _are_databases(each.manifest["files"])]
    if not complete:
        return candidate.state == SETTLED or candidate.manifest["evidence"]["kind"] == "format"
    manifest, base = candidate.manifest, complete[0].manifest
    if candidate.state == SETTLED:
        return manifest["totalBytes"] >= _SETTLED_SHARE * base["totalBytes"]
    shape: Shape = shape_of_manifest(manifest)
    is_alike = any(shape.covers(shape_of_manifest(each.manifest)) for each in complete[:_COMPARED])
    return is_alike and manifest["savedAtMs"] - base["savedAtMs"] >= _WORTH_QUIETS * quiet_ms


def is_whole(state: str, files: Sequence[dict]) -> bool:
    """Whether a program that fails with it fails for another reason. `files` are manifest entries."""
    return state == COMPLETE or _are_databases(files)


def _are_databases(files: Sequence[dict]) -> bool:
    """A database next to the program's checkpoints, such as that of a tracker, is there before the first of them."""
    return len(files) > 0 and all(is_database(entry["path"]) for entry in files)


class Restorer:
    def __init__(self, store: Store, keys: Keys, job_id: str, patience: Patience, is_start: bool = False) -> None:
        """`is_start`: a store that only refuses is given up, as in `Trouble`."""
        self._store = store
        self._keys = keys
        self._job_id = job_id
        self._patience = patience
        self._is_start = is_start
        self._user: Optional[int] = None
        """The new owner of the restored files; None keeps the owner."""

    def restore(
        self,
        attempt: int,
        directory: str,
        folder: str,
        clock: Clock,
        remark: Remark,
        quiet_ms: int = 0,
        tried: Optional[Set[CheckpointId]] = None,
        note: Callable[[Candidate, str], None] = lambda candidate, why: None,
        user: Optional[int] = None,
    ) -> StoredCheckpoints:
        """Restores into `directory` the best checkpoint that was not `tried` on this machine before; `note` is called before the checkpoint
        is read. Raises `GaveUp` when the store does not answer in time and `OSError` when the machine's disk refuses a write."""
        tried = tried or set()
        self._user = user
        trouble = Trouble("looking for checkpoints", remark, clock, self._is_start)
        names = persist(
            lambda: self._store.folders(self._keys.checkpoints), self._patience.is_hopeless, trouble
        )
        parsed = [parse_checkpoint_id(name) for name in names]
        ids = [checkpoint for checkpoint in parsed if checkpoint is not None]
        ids.sort(key=lambda checkpoint: checkpoint.age, reverse=True)
        failed = persist(lambda: read_failed(self._store, self._keys, attempt), self._patience.is_hopeless, trouble)
        candidates, own_steps, begun_steps = [], [], []
        for checkpoint in ids:
            bodies = self._manifests(checkpoint, trouble)
            if checkpoint.attempt == attempt:
                (own_steps if bodies else begun_steps).append(checkpoint.step)
            candidates += self._readable(checkpoint, bodies, remark)
        found = StoredCheckpoints(None, own_steps, begun_steps, [], ids[0] if ids else None)
        complete = [each.manifest for each in candidates if each.state == COMPLETE and each.checkpoint not in failed]
        newest_revisions = {each.checkpoint: each.manifest for each in reversed(candidates)}
        found = found._replace(past=Past(complete[:_COMPARED], list(newest_revisions.values())))
        ranked = rank([each for each in candidates if each.checkpoint not in tried], failed, quiet_ms)
        for candidate in ranked:
            try:
                why = self._why(candidate, candidates, failed | tried)
                note(candidate, why)
                restored = self._bring(candidate, directory, folder, trouble, remark)._replace(why=why)
                remark("restored checkpoint %s: %s" % (candidate.checkpoint.name, why))
                return found._replace(restored=restored)
            except (Corrupt, DocumentError, RecursionError, OSError) as error:
                if isinstance(error, OSError) and error.errno not in _OF_NAMES:
                    raise
                # Without the name, which can have thousands of letters.
                words = error.strerror if isinstance(error, OSError) else error
                remark("checkpoint %s is damaged, using the previous one: %s" % (candidate.checkpoint.name, words))
        return found

    def _why(self, chosen: Candidate, candidates: Sequence[Candidate], unusable: Set[CheckpointId]) -> str:
        passed = [each for each in candidates if each.checkpoint.age > chosen.checkpoint.age]
        failed = [each for each in passed if each.checkpoint in unusable]
        if failed:
            names = ", ".join(each.checkpoint.name for each in failed[:3])
            return "%s; the program failed right after resuming from %s" % (chosen.words, names)
        if passed:
            return "%s; newer ones are not proven complete (%s)" % (chosen.words, passed[0].checkpoint.name)
        return "the newest (%s)" % chosen.words

    def _manifests(self, checkpoint: CheckpointId, trouble: Trouble) -> List[bytes]:
        """Returns every revision, newest first; none when the upload was never finished."""
        bodies: List[bytes] = []
        while True:
            key = self._keys.manifest(checkpoint, len(bodies) + 1)
            body = persist(lambda: self._store.get(key), self._patience.is_hopeless, trouble)
            if body is None:
                return bodies[::-1]
            bodies.append(body)

    def _readable(self, checkpoint: CheckpointId, bodies: Sequence[bytes], remark: Remark) -> List[Candidate]:
        """Returns the newest readable revision, followed by earlier ones as fallbacks for damaged files."""
        found = []
        for body in bodies:
            try:
                found.append(Candidate(checkpoint, read_manifest(body, self._job_id, checkpoint)))
            except (Corrupt, DocumentError) as error:
                remark("checkpoint %s is damaged, using the previous one: %s" % (checkpoint.name, error))
        return found

    def _download(self, entries: Sequence[dict], folder: str, trouble: Trouble) -> None:
        """Raises `Corrupt`."""

        def download() -> None:
            os.makedirs(folder, exist_ok=True)
            files = []
            for entry in entries:
                path = os.path.join(folder, entry["path"])
                remove_tree(path)
                if "linkedTo" not in entry:
                    files.append(FileDown(self._store, self._keys.stored_file(entry["storedAt"]), path, entry))
            transfer_files(files, self._patience.is_stopped)
            missing = [entry for entry in entries if "linkedTo" in entry and not _link(folder, entry)]
            for entry in missing:
                path = os.path.join(folder, entry["path"])
                transfer_files([FileDown(self._store, self._keys.stored_file(entry["storedAt"]), path, entry)], self._patience.is_stopped)

        persist(download, self._patience.is_hopeless, trouble)

    def _bring_older(self, entries: List[dict], folder: str, trouble: Trouble, remark: Remark) -> List[dict]:
        """Downloads the older units that the program still kept. Returns the entries without those of damaged units: the program starts
        without them."""
        units: Dict[str, List[dict]] = {}
        for entry in entries:
            if entry.get("isOlder", False):
                unit = unit_of(entry["path"])
                units.setdefault(entry["path"] if unit is None else unit.path, []).append(entry)
        try:
            self._download([entry for unit in units.values() for entry in unit], folder, trouble)
            return entries
        except Corrupt:
            pass  # found out below, unit by unit
        for path, unit in units.items():
            try:
                self._download(unit, folder, trouble)
            except Corrupt as error:
                remark("%s, which the program had kept, is damaged and not restored: %s" % (path, error))
                remove_tree(os.path.join(folder, path))
                entries = [entry for entry in entries if entry not in unit]
        return entries

    def _bring(self, candidate: Candidate, directory: str, folder: str, trouble: Trouble, remark: Remark) -> Restored:
        checkpoint, manifest = candidate
        # Retention keeps a checkpoint that is noted as wanted, but may have removed it just before.
        key = self._keys.manifest(checkpoint, manifest["revision"])
        if persist(lambda: self._store.get(key), self._patience.is_hopeless, trouble) is None:
            raise Corrupt("it was removed in the meantime")
        entries = [
            dict(entry, storedAt=entry.get("storedAt") or stored_at(checkpoint, entry["path"]))
            for entry in manifest["files"]
        ]

        older_bytes = sum(entry["sizeBytes"] for entry in entries if entry.get("isOlder", False))
        if older_bytes >= _LARGE_BYTES:
            told = (checkpoint.name, in_bytes(manifest["totalBytes"]), in_bytes(older_bytes))
            remark("restoring checkpoint %s: %s, and %s of older ones that the program had kept" % told)
        remove_tree(folder)
        self._download([entry for entry in entries if not entry.get("isOlder", False)], folder, trouble)
        whole, entries = entries, self._bring_older(entries, folder, trouble, remark)
        left_out = {unit_of(entry["path"]) for entry in whole} - {unit_of(entry["path"]) for entry in entries}
        folders = [each for each in manifest.get("folders", []) if unit_of(each["path"]) not in left_out]
        for each in folders:
            os.makedirs(os.path.join(folder, each["path"]), exist_ok=True)
        for link in manifest.get("links", []):
            path = os.path.join(folder, link["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(link["target"], path)
        _check_links(folder, manifest)
        if self._user is not None:
            # Done in this place because no command of the job can access it.
            give(folder, self._user)
        for name in os.listdir(folder):
            target = os.path.join(directory, name)
            remove_tree(target)
            os.rename(os.path.join(folder, name), target)
        _set_times(directory, entries, folders)
        return Restored(
            checkpoint,
            manifest["resumePath"],
            manifest["revision"],
            candidate.state,
            candidate.words,
            manifest["isStepKnown"],
            entries,
        )


def _check_links(folder: str, manifest: dict) -> None:
    """Raises `Corrupt` for a link that leads out of the folder by way of another."""
    inside = os.path.realpath(folder) + os.sep
    for link in manifest.get("links", []):
        if not (os.path.realpath(os.path.join(folder, link["path"])) + os.sep).startswith(inside):
            raise Corrupt("the link %s leads out of the checkpoint" % link["path"])


def _link(folder: str, entry: dict) -> bool:
    """Makes a further name of a restored file. Returns False when that file was not restored, or the file system has no such names."""
    target = os.path.join(folder, entry["path"])
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.link(os.path.join(folder, entry["linkedTo"]), target)
        return True
    except OSError:
        return False


def _set_times(directory: str, entries: Sequence[dict], folders: Sequence[dict]) -> None:
    """Restores permissions of folders, and the times and the order of files and folders: programs look for the last written one by the time
    of its content or of its entry. Programs cannot set the entry time, which each of these changes moves, so it proves the order: permissions
    come first, except those without which this process could not reach what is inside."""
    for each in folders:
        if each["mode"] & stat.S_IXUSR:
            os.chmod(os.path.join(directory, each["path"]), each["mode"] & MODE)
    times: Dict[str, int] = {}
    for entry in entries:
        path = entry["path"]
        while "modifiedAtMs" in entry and path:
            times[path] = max(times.get(path, 0), nanoseconds_of(entry))
            path = posixpath.dirname(path)
    times.update({each["path"]: nanoseconds_of(each) for each in folders if "modifiedAtMs" in each})
    before_ns = None
    for path in sorted(times, key=lambda path: (times[path], -path.count("/"), path)):
        if before_ns is not None and times[path] - before_ns >= _APART_MS * 1_000_000:
            time.sleep(_TICK_SECONDS)
        before_ns = times[path]
        os.utime(os.path.join(directory, path), ns=(times[path],) * 2)
    closed = [each for each in folders if not each["mode"] & stat.S_IXUSR]
    for each in sorted(closed, key=lambda each: each["path"].count("/"), reverse=True):
        os.chmod(os.path.join(directory, each["path"]), each["mode"] & MODE)
