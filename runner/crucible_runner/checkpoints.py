"""Uploads complete checkpoints as they appear, the manifest last."""

import os
import threading
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from .clock import Clock, in_words
from .documents import is_utf8
from .keys import CheckpointId, Keys
from .looks import Looks, Seen
from .manifest import Taken, content_of, is_taken, manifest_bytes, put_manifest
from .names import is_record
from .processes import writing
from .restore import Found
from .retry import GaveUp, Pauses, Remark, Trouble, persist
from .scan import Selection
from .staging import Staged, stage
from .store import Store, StoreError
from .transfer import Changed, FileUp, upload_files

_LOOK_SECONDS = 0.5
# A checkpoint that is not uploaded because something keeps a file of it open deserves a word.
_PATIENCE_MS = 60_000
# Once the workload has ended, what fails on this machine itself (a file that may not be read) goes on failing.
_LAST_TRIES = 3

LeftMs = Callable[[], Optional[int]]


class Settings(NamedTuple):
    job_id: str
    attempt: int
    directory: str
    staging: str
    every_ms: int
    quiet_ms: int


class _Final(NamedTuple):
    """What is known once the workload has ended."""

    is_in_good_order: bool
    left_ms: LeftMs


class _Candidate(NamedTuple):
    seen: Seen
    checkpoint: CheckpointId
    is_step_known: bool


class Checkpoints:
    """The attempt's checkpoints: which there are, and the thread that uploads new ones."""

    def __init__(self, settings: Settings, looks: Looks, store: Store, keys: Keys) -> None:
        self._settings = settings
        self._looks = looks
        self._store = store
        self._keys = keys
        self.newest: Optional[CheckpointId] = None
        self.upload_ms = 0
        """How long the last upload took."""
        self._steps: Set[int] = set()
        self._begun_steps: Set[int] = set()
        self._last_signature: Optional[frozenset] = None
        self._last_since_ms = -1
        self._last_began_ms: Optional[int] = None
        self._is_written_in_place = False
        self._is_hurried = False
        self._warned_signature: Optional[frozenset] = None
        self._final: Optional[_Final] = None
        self._wake = threading.Event()
        self._current: Optional[_Candidate] = None

    def begin(self, found: Found, clock: Clock, remark: Remark, pids: Callable[[], List[int]]) -> None:
        """Starts to watch. `pids` names the processes that may be writing."""
        self._clock = clock
        self._remark = remark
        self._pids = pids
        self._trouble = Trouble("uploading a checkpoint", remark, clock)
        self._steps.update(found.own_steps)
        self._begun_steps.update(found.begun_steps)
        self.newest = found.restored.checkpoint if found.restored is not None else None
        self._looks.begin(Trouble("looking at the checkpoint directory", remark, clock))
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def hurry(self) -> None:
        """The next complete one goes up at once, whatever the pace."""
        self._is_hurried = True

    def finish(self, is_in_good_order: bool, left_ms: LeftMs) -> None:
        """The workload has ended: uploads what it has saved, as long as time is left (None: without end)."""
        self._looks.end()
        try:
            self._looks.look()
        except Exception as error:  # the directory is the workload's and may be anything
            self._remark("the checkpoint directory cannot be read: %s" % error)
        self._final = _Final(is_in_good_order, left_ms)
        self._wake.set()
        while self._thread.is_alive() and not self._is_out_of_time():
            self._thread.join(0.05)

    def _is_out_of_time(self) -> bool:
        left_ms = self._final.left_ms() if self._final is not None else None
        return left_ms is not None and left_ms <= 0

    def _run(self) -> None:
        pauses = Pauses()
        failures = 0
        while not self._is_out_of_time() and failures < _LAST_TRIES:
            is_final = self._final is not None
            try:
                candidate = self._find()
                if candidate is not None:
                    self._upload(candidate)
                    self._trouble.passed()
                    pauses.reset()
                elif is_final:
                    return
                else:
                    self._wake.wait(_LOOK_SECONDS)
            except (Changed, Taken) as reason:
                self._remark("a checkpoint was dropped: %s" % reason)
                failures += is_final
                self._wake.wait(_LOOK_SECONDS)
            except GaveUp:
                continue
            except Exception as error:  # the store, the disk, or whatever it is: it must be tried again
                self._trouble.happened(error)
                failures += is_final and not isinstance(error, StoreError)
                # Not the whole pause when the end comes: then every second counts.
                pauses.wait(lambda: self._is_out_of_time() or (self._final is not None) != is_final)
                if (self._final is not None) != is_final:
                    pauses.reset()

    def _find(self) -> Optional[_Candidate]:
        """What should be uploaded now, if anything: the newest complete checkpoint, unless it is in the store."""
        for index, seen in enumerate(self._looks.seen):
            if seen.selection.signature == self._last_signature:
                if index == 0:
                    return None
                continue
            if index > 0 and seen.since_ms <= self._last_since_ms:
                continue  # older than what is in the store
            step, is_known = self._number(seen)
            if step in self._steps or not self._is_complete(seen):
                continue
            return _Candidate(seen, CheckpointId(step, self._settings.attempt), is_known)
        return None

    def _is_complete(self, seen: Seen) -> bool:
        final, now_ms = self._final, self._clock.mono_ms()
        if seen.is_doubtful:
            self._warn(seen, "the checkpoint is not uploaded: the disk was full when it was written")
            return False
        is_held = seen.directory != self._settings.directory
        is_quiet = seen.until_ms - seen.since_ms >= self._settings.quiet_ms
        if final is not None:
            return seen.is_declared or is_quiet or (final.is_in_good_order and not is_held)
        began_ms, every_ms = self._last_began_ms, self._settings.every_ms
        if began_ms is not None and now_ms - began_ms < every_ms and not self._is_hurried:
            return False
        if seen.is_declared:
            return True
        return is_quiet and not self._is_open(seen, now_ms)

    def _is_open(self, seen: Seen, now_ms: int) -> bool:
        """Whether a process has a file of it open for writing."""
        open_files = writing(self._pids())
        for path, stamp in seen.selection.files.items():
            if (stamp.device, stamp.inode) in open_files and not is_record(path):
                if now_ms - seen.since_ms > _PATIENCE_MS:
                    words = "the checkpoint is not uploaded while %s is held open for writing"
                    self._warn(seen, words % path)
                return True
        return False

    def _warn(self, seen: Seen, words: str) -> None:
        """Says it once for each checkpoint."""
        if self._warned_signature != seen.selection.signature:
            self._warned_signature = seen.selection.signature
            self._remark(words)

    def _number(self, seen: Seen) -> Tuple[int, bool]:
        """The step, and whether it is known or only a running number. What is newer must have the higher number."""
        if seen.selection.step is not None:
            return seen.selection.step, True
        newest = self.newest.step if self.newest is not None else -1
        told = seen.progress_step if seen.progress_step is not None else seen.selection.epoch
        if told is not None and told > newest and told not in self._steps:
            return told, True
        step = max(newest, 0) + 1
        while step in self._steps:
            step += 1
        return step, False

    def _upload(self, candidate: _Candidate) -> None:
        began_ms = self._clock.mono_ms()
        seen = candidate.seen
        _check_names(seen.selection)
        staged = Staged(self._settings.staging)
        try:
            stage(staged, seen.directory, seen.selection, self._is_written_in_place)
            if not (staged.is_what_was_seen(seen.selection) and self._looks.is_still(seen)):
                raise Changed("it changed while it was set aside")
            self._send(candidate, staged, began_ms)
        except FileNotFoundError as error:
            raise Changed("it was deleted before it was safe (%s)" % error.filename) from error
        except Taken:
            self._steps.add(candidate.checkpoint.step)
            raise
        finally:
            self._current = None
            staged.remove()
        self._looks.uploaded(seen)
        self._steps.add(candidate.checkpoint.step)
        self._last_signature = seen.selection.signature
        self._last_since_ms = seen.since_ms
        self._last_began_ms = began_ms
        self._is_hurried = False
        self.newest = max(self.newest or candidate.checkpoint, candidate.checkpoint, key=lambda each: each.age)
        self.upload_ms = self._clock.mono_ms() - began_ms
        total = sum(stamp.size for stamp in staged.stamps.values())
        files = "1 file" if len(staged.stamps) == 1 else "%d files" % len(staged.stamps)
        told = (candidate.checkpoint.name, files, total / 1e6, in_words(self.upload_ms))
        self._remark("checkpoint %s is safe (%s, %.1f MB, %s)" % told)

    def _send(self, candidate: _Candidate, staged: Staged, began_ms: int) -> None:
        manifest_key = self._keys.manifest(candidate.checkpoint)
        if candidate.checkpoint.step in self._begun_steps and is_taken(self._store, manifest_key):
            # Its files must stay what their manifest says.
            raise Taken("a manifest of a start before this one has come to %s" % manifest_key)
        keys = {path: self._keys.checkpoint_file(candidate.checkpoint, path) for path in staged.stamps}
        files = {
            path: FileUp(self._store, keys[path], staged.path(path), stamp.size)
            for path, stamp in staged.stamps.items()
        }
        self._current = candidate
        sent_from_ms = self._clock.mono_ms()
        try:
            upload_files(list(files.values()), lambda: self._is_not_worth_it(files, began_ms))
        except (Changed, StoreError):
            if staged.is_unchanged():
                raise
        if not staged.is_unchanged():
            # The workload writes in place: from now on a link is not enough.
            self._is_written_in_place = True
            for key in keys.values():
                self._delete(key)
            raise Changed("a file of it was written while it was uploaded")
        upload_ms = self._clock.mono_ms() - sent_from_ms
        manifest = manifest_bytes(dict(self._manifest(candidate, files), uploadMs=upload_ms))
        persist(lambda: put_manifest(self._store, manifest_key, manifest), self._is_out_of_time, self._trouble)

    def _manifest(self, candidate: _Candidate, files: Dict[str, FileUp]) -> dict:
        return {
            "version": 1,
            "jobId": self._settings.job_id,
            "attempt": candidate.checkpoint.attempt,
            "step": candidate.checkpoint.step,
            "isStepKnown": candidate.is_step_known,
            "createdAtMs": self._clock.wall_ms(),
            **content_of(candidate.seen.selection, files),
        }

    def _is_not_worth_it(self, files: Dict[str, FileUp], began_ms: int) -> bool:
        """True when time is over, or when there is a newer checkpoint and only time for that one."""
        final, current = self._final, self._current
        if final is None or current is None:
            return False
        left_ms = final.left_ms()
        if left_ms is None:
            return False
        newer = next(iter(self._looks.seen), None)
        if left_ms <= 0 or newer is None or newer.selection.signature == current.seen.selection.signature:
            return left_ms <= 0
        if not self._is_complete(newer):
            return False
        sent = sum(file.sent_bytes for file in files.values())
        ms_per_byte = (self._clock.mono_ms() - began_ms) / max(1, sent)
        newer_ms = sum(stamp.size for stamp in newer.selection.files.values()) * ms_per_byte
        current_ms = (sum(file.size for file in files.values()) - sent) * ms_per_byte
        return newer_ms <= left_ms < newer_ms + current_ms

    def _delete(self, key: str) -> None:
        try:
            self._store.delete(key)
        except StoreError:
            pass  # without a manifest it is no checkpoint; the control plane removes it later


def _check_names(selection: Selection) -> None:
    """Before anything is uploaded: the manifest could not say them."""
    for name in [*selection.files, *selection.links, *selection.links.values()]:
        if not is_utf8(name):
            raise ValueError("its file %s has a name that is no UTF-8: rename it" % os.fsencode(name))
