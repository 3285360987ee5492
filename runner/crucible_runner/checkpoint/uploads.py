"""Uploads checkpoints as they appear, the manifest last, and promotes uploaded ones that prove complete later."""

import threading
from typing import Callable, Dict, List, NamedTuple, Optional, Set

from ..amounts import in_bytes
from ..clock import Clock, in_words
from ..keys import CheckpointId, Keys
from ..store.base import Store, StoreError
from ..store.retry import GaveUp, Pauses, Remark, Trouble, persist
from ..store.transfer import Changed, FileUp
from .evidence import COMPLETE, Evidence
from .generations import Generation
from .scanner import Scanner, ScannedCheckpoint
from .manifest import Taken, manifest_bytes, put_manifest
from .names import unit_of
from .restore import StoredCheckpoints
from .scan import Selection
from .sending import Candidate, Sender, Settings, Uploaded
from .staging import Staged, stage, stage_databases, stage_older

_SCAN_SECONDS = 0.5
# Once the workload has ended, a local error (such as an unreadable file) is permanent.
_LAST_TRIES = 3
# A database that changes all the time is stored again after this many times the duration of the last copy.
_COPY_SHARE = 10
# A database next to a checkpoint is stored again this many times while the age of the checkpoint grows by its own amount.
_COPIES_PER_AGE = 10
# Number of recent uploads that are still checked for proof of completeness.
_UPLOADS_REMEMBERED = 4

LeftMs = Callable[[], Optional[int]]


class _Final(NamedTuple):
    """Facts known once the workload has ended."""

    is_in_good_order: bool
    left_ms: LeftMs


class _Older(NamedTuple):
    """The older files and folders next to the newest checkpoint."""

    signature: frozenset
    since_ms: int
    """The first scan (monotonic) that found them so."""
    of: CheckpointId
    """The checkpoint whose manifest lists them."""
    tried: Set[object]
    """The units that were uploaded, or could not be."""


_ALL_STORED = "all stored"
"""Takes the place of a unit in `tried` once the manifest lists everything that is stored."""


class Checkpoints:
    """The attempt's checkpoints and the thread that uploads new ones."""

    def __init__(
        self, settings: Settings, scanner: Scanner, store: Store, keys: Keys, on_new: Callable[[], None] = lambda: None
    ) -> None:
        """`on_new` is called when the program has made a new save."""
        self._settings = settings
        self._scanner = scanner
        self._store = store
        self._keys = keys
        self.newest: Optional[CheckpointId] = None
        self.newest_state: Optional[str] = None
        self.is_newest_step_known = True
        self.upload_ms = 0
        """The duration of the last upload."""
        self.uploads: List[Uploaded] = []
        """The recent uploads, newest last."""
        self.complete_at_ms: Optional[int] = None
        """When a checkpoint of this attempt last proved complete (monotonic)."""
        self.stored_at_ms: Optional[int] = None
        """When a checkpoint of this attempt was last stored (monotonic), whatever its evidence."""
        self.hindrance = ""
        """The reason why the newest save is not a checkpoint yet; a clause for people, empty when it is only too early."""
        self._on_new = on_new
        self._steps: Set[int] = set()
        self._paths_before: Set[str] = set()
        self._last_signature: Optional[frozenset] = None
        self._last_since_ms = -1
        self._last_began_ms: Optional[int] = None
        self._older: Optional[_Older] = None
        self._with_all_older: Optional[Selection] = None
        """The last one whose older files and folders are stored, as far as they can be."""
        self._is_hurried = False
        self._last_copy_ms = 0
        """When a database was last copied (monotonic)."""
        self._copy_ms = 0
        """How long that took."""
        self._said = ""
        self._final: Optional[_Final] = None
        self._is_given_up = False
        self._thread: Optional[threading.Thread] = None
        """None until the command is about to start."""
        self._wake = threading.Event()
        self._current: Optional[Candidate] = None
        self._sender: Optional[Sender] = None

    @property
    def failure(self) -> str:
        """Why the present upload does not succeed; empty when nothing is in its way."""
        return self._trouble.error

    def saving(self) -> Optional[dict]:
        """Returns the progress of the present upload; None without one."""
        return self._sender.saving() if self._sender is not None else None

    def begin(self, found: StoredCheckpoints, clock: Clock, remark: Remark, pids: Callable[[], List[int]]) -> None:
        """Starts to watch. `pids` names the processes that may be writing."""
        self._clock = clock
        self._remark = remark
        self._trouble = Trouble("uploading a checkpoint", remark, clock)
        self._steps.update(found.own_steps)
        restored = found.restored
        if restored is not None:
            newest = max(restored.checkpoint, found.newest or restored.checkpoint, key=lambda each: each.age)
            self.newest, self.newest_state = newest, restored.state
            self.is_newest_step_known = restored.is_step_known
        self._scanner.begin(Trouble("looking at the checkpoint directory", remark, clock), remark, pids, found.past)
        self._paths_before.update(self._scanner.stamps)
        self._sender = Sender(self._settings, self._store, self._keys, clock, found.begun_steps)
        if restored is not None:
            self._sender.know(restored.entries, self._scanner.stamps)
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def hurry(self) -> None:
        """Uploads the next complete checkpoint at once, regardless of the pace."""
        self._is_hurried = True

    def give_up(self) -> None:
        """The workload has ended and restarts with another checkpoint: nothing more is uploaded."""
        self._scanner.end()
        self._is_given_up = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def finish(self, is_in_good_order: bool, left_ms: LeftMs) -> None:
        """The workload has ended: uploads its saves while time is left (None: no limit). A workload that was not started has saved nothing."""
        if self._thread is None:
            return
        self._scanner.end()
        try:
            self._scanner.scan()
        except Exception as error:  # the workload owns the directory, which may contain anything
            self._remark("the checkpoint directory cannot be read: %s" % error)
        self._final = _Final(is_in_good_order, left_ms)
        self._wake.set()
        while self._thread.is_alive() and not self._is_out_of_time():
            self._thread.join(0.05)

    def _is_out_of_time(self) -> bool:
        if self._is_given_up:
            return True
        left_ms = self._final.left_ms() if self._final is not None else None
        return left_ms is not None and left_ms <= 0

    def _run(self) -> None:
        try:
            self._upload_all()
        finally:
            self._trouble.over()

    def _upload_all(self) -> None:
        pauses = Pauses()
        failures = 0
        while not self._is_out_of_time() and failures < _LAST_TRIES:
            is_final = self._final is not None
            try:
                self._promote()
                candidate = self._find()
                if candidate is not None:
                    self._upload(candidate)
                elif self._refresh_databases() or self._complete_older():
                    pass
                elif is_final:
                    return
                else:
                    # A short quiet period must be seen before it is over.
                    self._wake.wait(min(_SCAN_SECONDS, self._scanner.scan_seconds))
                    continue
                self._trouble.passed()
                pauses.reset()
            except (Changed, Taken) as reason:
                self._remark("a checkpoint was dropped: %s" % reason)
                failures += is_final
                self._wake.wait(_SCAN_SECONDS)
            except GaveUp:
                continue
            except Exception as error:  # a failure of the store, the disk or anything else: the upload must be retried
                self._trouble.happened(error)
                failures += is_final and not isinstance(error, StoreError)
                # The pause is cut short when the workload ends: then every second counts.
                pauses.wait(lambda: self._is_out_of_time() or (self._final is not None) != is_final)
                if (self._final is not None) != is_final:
                    pauses.reset()

    def _find(self) -> Optional[Candidate]:
        """Returns the next upload, if any: the newest checkpoint that counts, unless it is in the store."""
        # Read before `seen`: the last scan of the directory precedes the end.
        final = self._final
        for index, seen in enumerate(self._scanner.seen):
            if seen.selection.signature == self._last_signature:
                if index == 0:
                    return None
                continue
            if index > 0 and seen.since_ms <= self._last_since_ms:
                continue  # older than the checkpoint in the store
            grown = self._grown(seen)
            if grown is None and seen.selection.step in self._steps and not self._is_slot(seen):
                continue
            evidence = self._evidence(seen, index == 0, final)
            if evidence is None or (grown is None and final is None and not self._is_time(seen)):
                continue
            return self._as_candidate(seen, evidence, grown)
        return None

    def _refresh_databases(self) -> bool:
        """Stores the databases of the newest stored checkpoint again, with what the program has written since. Returns False when there is
        nothing to do."""
        seen = self._scanner.seen[0] if self._scanner.seen else None
        uploaded = self.uploads[-1] if self.uploads else None
        if seen is None or uploaded is None or seen.selection.signature != self._last_signature:
            return False
        files = self._sender.not_stored(self._scanner.databases(seen.selection))
        if not files or not (self._final is not None or self._is_database_time(uploaded)):
            return False
        self._last_copy_ms = began_ms = self._clock.mono_ms()
        staged = Staged(self._settings.staging, self._scanner.walls)
        try:
            stage_databases(staged, self._settings.directory, files)
            manifest = self._sender.send_more(uploaded, seen.selection, staged, lambda _: self._is_out_of_time())
            self._put(uploaded.checkpoint, manifest)
        finally:
            staged.remove()
        self._sender.remember(uploaded.checkpoint, seen.selection, manifest, staged)
        self.uploads[-1] = uploaded._replace(revision=manifest["revision"], manifest=manifest)
        self._copy_ms = self._clock.mono_ms() - began_ms
        return True

    def _is_database_time(self, uploaded: Uploaded) -> bool:
        """A database that is always written would otherwise be uploaded all the time, and every copy is kept as long as its checkpoint."""
        now_ms = self._clock.mono_ms()
        age_ms = now_ms - (self._last_began_ms or 0)
        pause_ms = max(self._settings.every_ms, self._scanner.quiet_ms, _COPY_SHARE * self._copy_ms, age_ms // _COPIES_PER_AGE)
        return now_ms - max(self._last_copy_ms, self._last_began_ms or 0) >= pause_ms

    def _complete_older(self) -> bool:
        """Adds an older unit that the program keeps, or all that are stored already, to the manifest of the newest stored checkpoint, and
        takes those out that the program has deleted. Returns False when there is nothing to do."""
        seen = self._scanner.seen[0] if self._scanner.seen else None
        uploaded = self.uploads[-1] if self.uploads else None
        if seen is None or uploaded is None or seen.selection.signature != self._last_signature:
            return False
        selection, older = seen.selection, self._older
        if selection is self._with_all_older:
            return False
        signature = frozenset([*selection.older.items(), *selection.older_links.items()])
        if older is None or older.signature != signature or older.of is not uploaded.checkpoint:
            older = self._older = _Older(signature, seen.until_ms, uploaded.checkpoint, set())
        is_quiet = self._final is not None or seen.until_ms - older.since_ms >= self._scanner.quiet_ms // 2
        if not is_quiet:
            return False
        lacking = [unit_of(path) for path in self._sender.not_stored(selection.older)]
        unit = next((each for each in lacking if each not in older.tried), _ALL_STORED)
        if unit in older.tried or not self._sender.lacks_older(uploaded, selection):
            self._with_all_older = selection
            return False
        self._send_older(uploaded, selection, unit)
        older.tried.add(unit)
        return True

    def _send_older(self, uploaded: Uploaded, selection: Selection, unit: object) -> None:
        files = [path for path in self._sender.not_stored(selection.older) if unit_of(path) == unit]
        staged = Staged(self._settings.staging, self._scanner.walls)
        try:
            stage_older(staged, self._settings.directory, files, self._sender.is_written_in_place, self._scanner.records)
            manifest = self._sender.send_more(uploaded, selection, staged, lambda _: self._is_out_of_time())
            self._put(uploaded.checkpoint, manifest)
        finally:
            staged.remove()
        self._sender.remember(uploaded.checkpoint, selection, manifest, staged)
        self.uploads[-1] = uploaded._replace(revision=manifest["revision"], manifest=manifest)

    def _evidence(self, seen: ScannedCheckpoint, is_newest: bool, final: Optional[_Final]) -> Optional[Evidence]:
        evidence, hindrance = self._scanner.standing(seen, final.is_in_good_order if final is not None else None)
        if is_newest:
            self.hindrance = hindrance
            if hindrance and final is not None:
                self._say("the last checkpoint is not kept: %s" % hindrance)
        return evidence

    def _is_time(self, seen: ScannedCheckpoint) -> bool:
        if self._is_hurried or seen.is_declared and self._last_began_ms is None:
            return True
        began_ms = self._last_began_ms
        pause_ms = self._settings.every_ms
        if self._scanner.is_live(seen):
            pause_ms = max(pause_ms, self._scanner.quiet_ms, _COPY_SHARE * self.upload_ms)
        return began_ms is None or self._clock.mono_ms() - began_ms >= pause_ms

    def _say(self, words: str) -> None:
        if words != self._said:
            self._said = words
            self._remark(words)

    def _grown(self, seen: ScannedCheckpoint) -> Optional[Uploaded]:
        """Returns the stored checkpoint of the same save, which was still growing at its upload."""
        last = self.uploads[-1] if self.uploads else None
        return last if last is not None and last.generation is seen.generation else None

    def _as_candidate(self, seen: ScannedCheckpoint, evidence: Evidence, grown: Optional[Uploaded]) -> Candidate:
        grown = grown or self._of_same_step(seen)
        step, is_known = self._number(seen, grown)
        if grown is not None and step == grown.checkpoint.step:
            return Candidate(seen, grown.checkpoint, is_known, evidence, grown.revision + 1)
        return Candidate(seen, CheckpointId(step, self._settings.attempt), is_known, evidence)

    def _of_same_step(self, seen: ScannedCheckpoint) -> Optional[Uploaded]:
        """Returns the last upload if the program had reported the same step then: steps are printed slightly early or late. The newer save
        replaces it."""
        last = self.uploads[-1] if self.uploads else None
        is_named = seen.is_declared or (seen.selection.step is not None and not self._is_slot(seen))
        return last if last is not None and not is_named and last.checkpoint.step == seen.step else None

    def _is_slot(self, seen: ScannedCheckpoint) -> bool:
        """Whether the number in the names is not a step: a name that is written again is one of alternating slots."""
        return not seen.is_declared and any(path in self._paths_before for path in seen.generation.files)

    def _number(self, seen: ScannedCheckpoint, grown: Optional[Uploaded]) -> tuple:
        """Returns the step, and whether it is known or only a running number. A newer checkpoint must have the higher number."""
        own = grown.checkpoint.step if grown is not None else None
        used = self._steps - {own}
        in_contents = None if seen.is_declared else self._scanner.step_in(seen)
        if seen.selection.step is not None and not self._is_slot(seen):
            return seen.selection.step, True
        newest = self.newest.step if self.newest is not None else -1
        for told in (in_contents, seen.step):
            if told is not None and (told > newest or told == own) and told not in used:
                return told, True
        if own is not None:
            return own, False
        epoch = seen.selection.epoch
        if epoch is not None and epoch > newest and epoch not in used:
            return epoch, False
        step = max(newest, 0) + 1
        while step in used:
            step += 1
        return step, False

    def _promote(self) -> None:
        """Marks checkpoints in the store whose evidence is stronger than at their upload."""
        final = self._final  # first, as in `_find`
        for index, uploaded in enumerate(self.uploads):
            generation = uploaded.generation
            if uploaded.evidence.state == COMPLETE or generation.files != uploaded.files:
                continue
            evidence = self._evidence_now(uploaded, final)
            if evidence is None or evidence.trust <= uploaded.evidence.trust:
                continue
            # The proof was read from the files on the disk, which the program may have written again since the last scan.
            self._scanner.scan()
            if generation.files != uploaded.files:
                continue
            if any(later.evidence.state == COMPLETE for later in self.uploads[index + 1 :]):
                # The checkpoint may be about to be deleted from the store; its remembered shape counts from here on.
                self.uploads[index] = uploaded._replace(evidence=evidence)
                if evidence.state == COMPLETE:
                    self._scanner.saves.accept(generation)
                continue
            revision = uploaded.revision + 1
            manifest = dict(uploaded.manifest, revision=revision, **evidence.document())
            self._put(uploaded.checkpoint, manifest)
            self.uploads[index] = uploaded._replace(revision=revision, evidence=evidence, manifest=manifest)
            self._note(uploaded.checkpoint, evidence, generation, manifest["isStepKnown"])
            self._remark("checkpoint %s is %s: %s" % (uploaded.checkpoint.name, _word(evidence), evidence.text))

    def _put(self, checkpoint: CheckpointId, manifest: dict) -> None:
        key, body = self._keys.manifest(checkpoint, manifest["revision"]), manifest_bytes(manifest)
        persist(lambda: put_manifest(self._store, key, body), self._is_out_of_time, self._trouble)

    def _evidence_now(self, uploaded: Uploaded, final: Optional[_Final]) -> Optional[Evidence]:
        newest = self._scanner.seen[0] if self._scanner.seen else None
        if newest is not None and newest.generation is uploaded.generation:
            return self._evidence(newest, True, final)
        return self._scanner.standing_of_uploaded(uploaded.generation).evidence

    def _note(
        self, checkpoint: CheckpointId, evidence: Evidence, generation: Generation, is_step_known: bool
    ) -> None:
        if evidence.state == COMPLETE:
            self.complete_at_ms = self._clock.mono_ms()
            self._scanner.saves.accept(generation)
        if self.newest is None or checkpoint.age >= self.newest.age:
            self.newest, self.newest_state = checkpoint, evidence.state
            self.is_newest_step_known = is_step_known

    def _upload(self, candidate: Candidate) -> None:
        began_ms = self._clock.mono_ms()
        seen = candidate.seen
        staged = Staged(self._settings.staging, self._scanner.walls)
        try:
            stage(staged, seen.directory, seen.selection, self._sender.is_written_in_place, self._scanner.records)
            is_live = self._scanner.is_live(seen)
            if not (staged.is_what_was_seen(seen.selection) and (is_live or self._scanner.is_still(seen))):
                raise Changed("it changed while it was copied")
            self._current = candidate
            manifest = self._sender.send(candidate, staged, lambda files: self._is_not_worth_it(files, began_ms))
            self._put(candidate.checkpoint, manifest)
        except FileNotFoundError as error:
            raise Changed("it was deleted before it was stored (%s)" % error.filename) from error
        except Taken:
            self._steps.add(candidate.checkpoint.step)
            raise
        finally:
            self._current = None
            staged.remove()
        self._scanner.uploaded(seen)
        self._remember(candidate, manifest, began_ms, staged)
        if candidate.evidence.state == COMPLETE and self._scanner.is_database(seen):
            self._scanner.saves.close(seen.generation)
        self.upload_ms = self._clock.mono_ms() - began_ms
        files = "1 file" if len(staged.stamps) == 1 else "%d files" % len(staged.stamps)
        told = (candidate.checkpoint.name, files, in_bytes(manifest["totalBytes"]), in_words(self.upload_ms))
        words = "checkpoint %s is stored (%s, %s, %s); " % told
        self._remark("%s%s: %s" % (words, _word(candidate.evidence), candidate.evidence.text))

    def _remember(self, candidate: Candidate, manifest: dict, began_ms: int, staged: Staged) -> None:
        seen = candidate.seen
        if candidate.revision == 1:
            self._on_new()
        self._steps.add(candidate.checkpoint.step)
        self._paths_before.update(seen.generation.files)
        self._last_signature = seen.selection.signature
        self._last_since_ms = seen.since_ms
        self._last_began_ms = began_ms
        self.stored_at_ms = self._clock.mono_ms()
        self._is_hurried = False
        uploaded = Uploaded(
            candidate.checkpoint,
            candidate.revision,
            candidate.evidence,
            seen.generation,
            dict(seen.generation.files),
            manifest,
        )
        kept = self.uploads[:-1] if candidate.revision > 1 else self.uploads
        self.uploads = (kept + [uploaded])[-_UPLOADS_REMEMBERED:]
        self._sender.remember(candidate.checkpoint, seen.selection, manifest, staged)
        self._note(candidate.checkpoint, candidate.evidence, seen.generation, candidate.is_step_known)

    def _is_not_worth_it(self, files: Dict[str, FileUp], began_ms: int) -> bool:
        """Returns True when time is over, or when a newer checkpoint exists and time is left only for that one."""
        final, current = self._final, self._current
        if final is None or current is None:
            return False
        left_ms = final.left_ms()
        if left_ms is None:
            return False
        newer = next(iter(self._scanner.seen), None)
        if left_ms <= 0 or newer is None or newer.selection.signature == current.seen.selection.signature:
            return left_ms <= 0
        if self._scanner.standing(newer, final.is_in_good_order).evidence is None:
            return False
        sent = sum(file.sent_bytes for file in files.values())
        ms_per_byte = (self._clock.mono_ms() - began_ms) / max(1, sent)
        newer_ms = sum(stamp.size for stamp in newer.selection.files.values()) * ms_per_byte
        current_ms = (sum(file.size for file in files.values()) - sent) * ms_per_byte
        return newer_ms <= left_ms < newer_ms + current_ms

def _word(evidence: Evidence) -> str:
    return "complete" if evidence.state == COMPLETE else "provisional"
