"""Uploads the files of a checkpoint that are not in the store yet."""

import os
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from ..clock import Clock
from ..control.saving import of_checkpoint
from ..documents import is_utf8
from ..keys import CheckpointId, Keys, stored_at
from ..store.base import Store, StoreError
from ..store.transfer import Changed, FileUp, transfer_files
from .evidence import Evidence
from .generations import Generation
from .scanner import Seen
from .manifest import Taken, entry_of, is_taken
from .scan import FileStamp, Selection, newest_change_ns
from .staging import Staged


class Settings(NamedTuple):
    job_id: str
    attempt: int
    directory: str
    staging: str
    every_ms: int


class Candidate(NamedTuple):
    """A checkpoint to upload, with the number and evidence to record for it."""

    seen: Seen
    checkpoint: CheckpointId
    is_step_known: bool
    evidence: Evidence
    revision: int = 1


class Uploaded(NamedTuple):
    """A checkpoint of this attempt that is in the store."""

    checkpoint: CheckpointId
    revision: int
    evidence: Evidence
    generation: Generation
    files: Dict[str, FileStamp]
    """The files of its generation in their uploaded state."""
    manifest: dict


class _Stored(NamedTuple):
    """A file that is already in the store."""

    stamp: FileStamp
    entry: dict
    """The manifest entry, with `storedAt`."""


class Sender:
    """Remembers which files are in the store, and whether the workload writes in place."""

    def __init__(self, settings: Settings, store: Store, keys: Keys, clock: Clock, begun_steps: Sequence[int]) -> None:
        self._settings = settings
        self._store = store
        self._keys = keys
        self._clock = clock
        self._begun_steps = set(begun_steps)
        self._stored: Dict[str, _Stored] = {}
        self._sending: Dict[str, FileUp] = {}
        self.is_written_in_place = False
        """If true, a link does not preserve the content for the upload."""

    def send(self, candidate: Candidate, staged: Staged, is_given_up: Callable[[Dict[str, FileUp]], bool]) -> dict:
        """Uploads the files that are not in the store yet. Returns the manifest for the caller to put. Raises `Changed`, `Taken`,
        `StoreError`, and `GaveUp` when `is_given_up`."""
        checkpoint, revision = candidate.checkpoint, candidate.revision
        manifest_key = self._keys.manifest(checkpoint, revision)
        if revision == 1 and checkpoint.step in self._begun_steps and is_taken(self._store, manifest_key):
            # The files of a manifest must never change.
            raise Taken("an earlier start has written a manifest to %s" % manifest_key)
        kept = self._kept(candidate.seen.selection)
        places = {
            path: stored_at(checkpoint, path, revision) for path in staged.stamps if path not in kept
        }
        files = {
            path: FileUp(self._store, self._keys.stored_file(place), staged.path(path), staged.stamps[path].size)
            for path, place in places.items()
        }
        sent_from_ms = self._clock.mono_ms()
        self._sending = files
        try:
            transfer_files(list(files.values()), lambda: is_given_up(files))
        except (Changed, StoreError):
            if staged.is_unchanged():
                raise
        finally:
            self._sending = {}
        if not staged.is_unchanged():
            # The workload writes in place: links no longer suffice from now on.
            self.is_written_in_place = True
            for place in places.values():
                self._delete(self._keys.stored_file(place))
            raise Changed("a file of it was written while it was uploaded")
        upload_ms = self._clock.mono_ms() - sent_from_ms
        entries = [
            kept[path] if path in kept else self._entry(candidate, path, files[path]) for path in sorted(staged.stamps)
        ]
        return dict(self._manifest(candidate, entries), uploadMs=upload_ms)

    def saving(self) -> Optional[dict]:
        """Returns the progress of the current upload; None without one."""
        return of_checkpoint((file.size, file.sent_bytes) for file in self._sending.values())

    def remember(self, candidate: Candidate, manifest: dict) -> None:
        """Records a checkpoint whose manifest is in the store. Later ones refer only to its files, because others may be about to be
        deleted.
        """
        self.know(
            [
                dict(entry, storedAt=entry.get("storedAt") or stored_at(candidate.checkpoint, entry["path"]))
                for entry in manifest["files"]
            ],
            candidate.seen.selection.files,
        )

    def know(self, entries: Sequence[dict], stamps: Dict[str, FileStamp]) -> None:
        """Records files that are in the store in the same state as on this machine."""
        self._stored = {}
        for entry in entries:
            stamp = stamps.get(entry["path"])
            if stamp is not None and stamp.size == entry["sizeBytes"]:
                self._stored[entry["path"]] = _Stored(stamp, entry)

    def _kept(self, selection: Selection) -> Dict[str, dict]:
        """Returns the entries of files whose current state is in the store."""
        return {
            path: self._stored[path].entry
            for path, stamp in selection.files.items()
            if path in self._stored and self._stored[path].stamp == stamp
        }

    def _entry(self, candidate: Candidate, path: str, file: FileUp) -> dict:
        entry = entry_of(path, file, candidate.seen.selection.files[path])
        place = stored_at(candidate.checkpoint, path, candidate.revision)
        return entry if candidate.revision == 1 else dict(entry, storedAt=place)

    def _manifest(self, candidate: Candidate, entries: List[dict]) -> dict:
        selection, generation = candidate.seen.selection, candidate.seen.generation
        manifest = {
            "version": 1,
            "jobId": self._settings.job_id,
            "attempt": candidate.checkpoint.attempt,
            "step": candidate.checkpoint.step,
            "isStepKnown": candidate.is_step_known,
            "revision": candidate.revision,
            **candidate.evidence.document(),
            "createdAtMs": self._clock.wall_ms(),
            "savedAtMs": newest_change_ns(selection) // 1_000_000,
            "saveMs": generation.save_ms,
            "totalBytes": sum(entry["sizeBytes"] for entry in entries),
            "files": entries,
            "resumePath": selection.resume_path,
        }
        if selection.epoch is not None:
            manifest["epoch"] = selection.epoch
        if selection.links:
            manifest["links"] = [{"path": path, "target": to} for path, to in sorted(selection.links.items())]
        return manifest

    def _delete(self, key: str) -> None:
        try:
            self._store.delete(key)
        except StoreError:
            pass  # Without a manifest it is not a checkpoint, and the control plane removes it later.


def check_names(selection: Selection) -> None:
    """Runs before any upload: the manifest could not represent such names."""
    for name in [*selection.files, *selection.links, *selection.links.values()]:
        if not is_utf8(name):
            raise ValueError("the name of its file %s is not UTF-8: rename it" % os.fsencode(name))
