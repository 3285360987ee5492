"""Uploads the files of a checkpoint that are not in the store yet."""

from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

from ..clock import Clock
from ..control.saving import of_checkpoint
from ..keys import CheckpointId, Keys, place_of, stored_at
from ..store.base import Store, StoreError
from ..store.transfer import Changed, FileUp, transfer_files
from .evidence import Evidence
from .generations import Generation
from .scanner import ScannedCheckpoint
from .manifest import Taken, entry_of, is_taken, time_of
from .names import unit_of
from .scan import FileStamp, Selection, newest_change_ns
from .staging import Staged


IsGivenUp = Callable[[Dict[str, FileUp]], bool]


class Settings(NamedTuple):
    job_id: str
    attempt: int
    directory: str
    staging: str
    every_ms: int


class Candidate(NamedTuple):
    """A checkpoint to upload, with the number and evidence to record for it."""

    seen: ScannedCheckpoint
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
        self._renamed: Set[str] = set()
        """Paths that the store cannot hold as keys."""
        self.is_written_in_place = False
        """If true, a link does not preserve the content for the upload."""

    def send(self, candidate: Candidate, staged: Staged, is_given_up: IsGivenUp) -> dict:
        """Uploads the files that are not in the store yet. Returns the manifest for the caller to put. Raises `Changed`, `Taken`,
        `StoreError`, and `GaveUp` when `is_given_up`."""
        checkpoint, revision = candidate.checkpoint, candidate.revision
        manifest_key = self._keys.manifest(checkpoint, revision)
        if revision == 1 and checkpoint.step in self._begun_steps and is_taken(self._store, manifest_key):
            # The files of a manifest must never change.
            raise Taken("an earlier start has written a manifest to %s" % manifest_key)
        kept = self._kept(candidate.seen.selection.files)
        stamps = candidate.seen.selection.files
        first = {stamps[path]: path for path in sorted(staged.stamps, reverse=True) if path not in kept}
        # Of several names of one file, only the first is uploaded.
        places = {path: self._place(checkpoint, path, revision) for path in first.values()}
        sent_from_ms = self._clock.mono_ms()
        files = self._upload(places, staged, is_given_up)
        upload_ms = self._clock.mono_ms() - sent_from_ms
        sent = {path: self._entry(candidate, path, file) for path, file in files.items()}
        entries = [
            kept.get(path) or sent.get(path) or dict(_stored_entry(checkpoint, sent[first[stamps[path]]]), path=path)
            for path in sorted(staged.stamps)
        ]
        # Only what is stored already: nothing delays the newest checkpoint. `send_older` adds the others.
        older = self._stored_of(candidate.seen.selection.older)
        return dict(self._manifest(candidate, entries, older), uploadMs=upload_ms)

    def lacks_older(self, uploaded: Uploaded, selection: Selection) -> bool:
        """Whether the manifest of an uploaded checkpoint has not exactly the older files and folders that the program still keeps."""
        listed = {entry["path"] for entry in uploaded.manifest["files"] if entry.get("isOlder", False)}
        return listed != set(selection.older) or self._kept(selection.older).keys() != listed

    def not_stored(self, files: Mapping[str, FileStamp]) -> List[str]:
        """Returns the files whose current state is not in the store."""
        kept = self._kept(files)
        return [path for path in files if path not in kept]

    def send_more(self, uploaded: Uploaded, selection: Selection, staged: Staged, is_given_up: IsGivenUp) -> dict:
        """Uploads files that were staged: older ones, or databases of the checkpoint itself. Returns the manifest for the next revision of
        the uploaded checkpoint, with these and with those that are stored already. Raises as `send` does."""
        revision = uploaded.revision + 1
        places = {path: self._place(uploaded.checkpoint, path, revision) for path in staged.stamps}
        files = self._upload(places, staged, is_given_up)
        stamps = {**selection.older, **selection.files}
        fresh = {path: dict(entry_of(path, file, stamps[path]), storedAt=places[path]) for path, file in files.items()}
        entries = self._stored_of(selection.older)
        entries.update({path: entry for path, entry in fresh.items() if path in selection.older})
        # Half of a folder would look like a checkpoint.
        began = {unit_of(path) for path in files}
        torn = {unit_of(path) for path in selection.older if path not in entries} & began - {None}
        older = {path: entry for path, entry in entries.items() if unit_of(path) not in torn}
        own = [each for each in uploaded.manifest["files"] if not each.get("isOlder", False)]
        own = [fresh.get(each["path"]) or _stored_entry(uploaded.checkpoint, each) for each in own]
        manifest = dict(uploaded.manifest, revision=revision, createdAtMs=self._clock.wall_ms())
        return _with_files(manifest, own, older, selection)

    def _upload(self, places: Dict[str, str], staged: Staged, is_given_up: IsGivenUp) -> Dict[str, FileUp]:
        files = {
            path: FileUp(self._store, self._keys.stored_file(place), staged.path(path), staged.stamps[path].size)
            for path, place in places.items()
        }
        self._sending = files
        try:
            transfer_files(list(files.values()), lambda: is_given_up(files))
        except (Changed, StoreError):
            if staged.is_unchanged():
                raise
        except ValueError as error:
            refused = {path for path, file in files.items() if file.is_refused} - self._renamed
            if not refused:
                raise
            self._renamed |= refused
            raise Changed("the store cannot hold its names, so it is stored under others: %s" % error) from error
        finally:
            self._sending = {}
        if not staged.is_unchanged():
            # The workload writes in place: links no longer suffice from now on.
            self.is_written_in_place = True
            for place in places.values():
                self._delete(self._keys.stored_file(place))
            raise Changed("a file of it was written while it was uploaded")
        return files

    def _place(self, checkpoint: CheckpointId, path: str, revision: int) -> str:
        return place_of(checkpoint, path, revision, path not in self._renamed)

    def saving(self) -> Optional[dict]:
        """Returns the progress of the current upload; None without one."""
        return of_checkpoint((file.size, file.sent_bytes) for file in self._sending.values())

    def remember(self, checkpoint: CheckpointId, selection: Selection, manifest: dict, staged: Staged) -> None:
        """Records a checkpoint whose manifest is in the store. Later ones refer only to its files, because others may be about to be
        deleted. The size of a database that SQLite has copied may differ from that of its file.
        """
        entries = [_stored_entry(checkpoint, entry) for entry in manifest["files"]]
        stamps = {**selection.older, **selection.files}
        for entry in entries:
            before = self._stored.get(entry["path"])
            if before is not None and before.entry["storedAt"] == entry["storedAt"]:
                # An older unit is listed as it was stored, even if it has changed since.
                stamps[entry["path"]] = before.stamp
        before_stored = self._stored
        self.know(entries, stamps)
        for entry in entries:
            path, before = entry["path"], before_stored.get(entry["path"])
            is_as_before = before is not None and before.stamp == stamps.get(path)
            if path in stamps and (path in staged.databases or is_as_before):
                self._stored[path] = _Stored(stamps[path], entry)

    def know(self, entries: Sequence[dict], stamps: Mapping[str, FileStamp]) -> None:
        """Records files that are in the store in the same state as on this machine."""
        self._stored = {}
        for entry in entries:
            stamp = stamps.get(entry["path"])
            if stamp is not None and stamp.size == entry["sizeBytes"]:
                self._stored[entry["path"]] = _Stored(stamp, entry)

    def _stored_of(self, files: Iterable[str]) -> Dict[str, dict]:
        """Returns the entries of files as they were last stored, possibly in an earlier state."""
        return {path: self._stored[path].entry for path in files if path in self._stored}

    def _kept(self, files: Mapping[str, FileStamp]) -> Dict[str, dict]:
        """Returns the entries of files whose current state is in the store, possibly under another name."""
        by_stamp = {stored.stamp: stored.entry for stored in self._stored.values()}
        return {
            path: dict({name: value for name, value in by_stamp[stamp].items() if name != "isOlder"}, path=path)
            for path, stamp in files.items()
            if stamp in by_stamp
        }

    def _entry(self, candidate: Candidate, path: str, file: FileUp) -> dict:
        entry = entry_of(path, file, candidate.seen.selection.files[path])
        place = self._place(candidate.checkpoint, path, candidate.revision)
        return entry if place == stored_at(candidate.checkpoint, path) else dict(entry, storedAt=place)

    def _manifest(self, candidate: Candidate, entries: List[dict], older: Dict[str, dict]) -> dict:
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
            "resumePath": selection.resume_path,
        }
        if selection.epoch is not None:
            manifest["epoch"] = selection.epoch
        return _with_files(manifest, entries, older, selection)

    def _delete(self, key: str) -> None:
        try:
            self._store.delete(key)
        except StoreError:
            pass  # Files without a manifest are not a checkpoint; the control plane removes them later.


def _stored_entry(checkpoint: CheckpointId, entry: dict) -> dict:
    """Returns the entry with the place of its content."""
    return dict(entry, storedAt=entry.get("storedAt") or stored_at(checkpoint, entry["path"]))


def _with_files(manifest: dict, entries: List[dict], older: Dict[str, dict], selection: Selection) -> dict:
    left_out = {unit_of(path) for path in selection.older if path not in older} - {unit_of(path) for path in older} - {None}
    links = {path: to for path, to in selection.older_links.items() if unit_of(path) not in left_out}
    links.update(selection.links)
    folders = [(path, stamp) for path, stamp in sorted(selection.folders.items()) if unit_of(path) not in left_out]
    files = [*entries, *(dict(entry, isOlder=True) for entry in older.values())]
    result = dict(manifest, totalBytes=sum(entry["sizeBytes"] for entry in entries))
    result["files"] = _with_hard_links(sorted(files, key=lambda entry: entry["path"]), selection)
    result["folders"] = [{"path": path, "mode": stamp.mode, **time_of(stamp.modified_ns)} for path, stamp in folders]
    result["links"] = [{"path": path, "target": to} for path, to in sorted(links.items())]
    return {name: value for name, value in result.items() if value or name not in ("folders", "links")}


def _with_hard_links(entries: List[dict], selection: Selection) -> List[dict]:
    """Notes which entries are further names of one file."""
    stamps = {**selection.older, **selection.files}
    first: Dict[tuple, dict] = {}
    result = []
    for entry in sorted(entries, key=lambda entry: entry.get("isOlder", False)):
        entry = {name: value for name, value in entry.items() if name != "linkedTo"}
        stamp = stamps.get(entry["path"])
        if stamp is not None:
            before = first.setdefault((stamp.device, stamp.inode), entry)
            if before is not entry and before["digest"] == entry["digest"]:
                entry["linkedTo"] = before["path"]
        result.append(entry)
    return sorted(result, key=lambda entry: entry["path"])
