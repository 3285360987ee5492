"""Scans the checkpoint directory repeatedly, and records which files were written together and since when they are quiet."""

import os
import threading
import time
from typing import Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence

from ..clock import Clock
from ..documents import HELPER_SAVED, parse
from ..paths import Paths, read_plain
from ..process.processes import OpenFile, open_for_writing, world_size_of
from ..process.symptoms import is_full
from ..progress import Progress
from ..store.retry import Remark, Trouble
from .databases import has_wal, is_sqlite
from .evidence import COMPLETE, SETTLED, Circumstances, Evidence, Formats, Judge, Standing
from .generations import Generation, Generations, Scan
from .hold import Hold
from .manifest import shape_of_manifest
from .names import is_unfinished
from .pace import Pace, Past, pace_of
from .records import Records, looks_like_text
from .rhythm import Rhythm
from .scan import (
    FileStamp,
    Filter,
    Selection,
    baseline_of,
    newest_change_ns,
    scan,
    scan_declared,
    select,
    select_declared,
    serious_files,
    single_file,
)

_SCAN_SECONDS_MAX = 1.0
_SCANS_PER_QUIET = 4
# Scanning ten thousand files takes a large part of a second: scans may use this share of the time, the workload gets the rest.
_LOOK_SHARE = 0.1
# Maximum delay between printing a line and reading it here.
_TELLING_MS = 200
# A line read this soon after a save began may have been printed before or after it, so the step is unknown.
_UNSURE_MS = 50
# A held file that has not been uploaded after this time makes room for a newer one.
_HOLD_MS = 10_000
# When all other files are quiet, a file that stays open for this many times the quiet time counts as permanently open.
_OPEN_QUIETS = 20


class Rules(NamedTuple):
    """The checkpoint rules of the order."""

    quiet_ms: int
    markers: Sequence[str] = ()
    wanted: Filter = Filter()


class ScannedCheckpoint(NamedTuple):
    """A checkpoint as it was at one scan."""

    selection: Selection
    since_ms: int
    """The first scan (monotonic) that found it in this state."""
    until_ms: int
    """The last scan (monotonic) that found it in this state."""
    step: Optional[int]
    """The last step reported before the save began; None when that is uncertain."""
    is_declared: bool
    """The workload has declared it complete."""
    directory: str
    """The folder of its files."""
    generation: Generation
    step_then: Optional[int] = None
    """The last step reported before the last scan: what the program wrote before that step is seen."""


class _First(NamedTuple):
    """The circumstances at the first scan that found a checkpoint in its current state."""

    at_ms: int
    step: Optional[int]
    is_disk_full: bool


class _Declaration(NamedTuple):
    written_ns: int
    step: int
    path: str


class Scanner:
    """The current content of the directory. Files present when `begin` was called are not a new checkpoint."""

    def __init__(self, paths: Paths, directory: str, rules: Rules, clock: Clock, progress: Progress) -> None:
        self._directory = directory
        self._rules = rules
        self.walls = rules.wanted.walls
        self._saved = paths.saved
        self._hold = Hold(paths.held, rules.wanted.walls)
        self._quiet_ms = self.quiet_ms = rules.quiet_ms
        self.scan_seconds = min(_SCAN_SECONDS_MAX, rules.quiet_ms / _SCANS_PER_QUIET / 1000) or 0.1
        self._clock = clock
        self._progress = progress
        self._lock = threading.Lock()
        self._baseline: FrozenSet[tuple] = frozenset()
        self._known: Dict[FrozenSet[tuple], _First] = {}
        self._held_since = _First(0, None, False)
        self._rhythm = Rhythm(rules.quiet_ms)
        self._held_ns = 0
        """When the first of the held files that are written often was written, by the file system's clock."""
        self._is_hold_proof = False
        """The next save proves that the held files were whole."""
        self._uploaded_since_ms = -1
        self._is_ended = threading.Event()
        self._ended_ms: Optional[int] = None
        self._open_since_ms: Dict[tuple, int] = {}
        self._pids: Callable[[], List[int]] = lambda: []
        self._world_size: Optional[int] = None
        self._remark: Remark = lambda _: None
        self.records = Records(rules.quiet_ms)
        self.saves = Generations((), (), rules.quiet_ms)
        self._pace = Pace()
        self._judge = Judge(directory, rules.quiet_ms, rules.markers)
        self._held_formats = Formats(paths.held)
        self.seen: List[ScannedCheckpoint] = []
        """Newest first."""
        self.left_out: Mapping[str, str] = {}
        """Members of the directory that cannot be stored, with the reasons."""

    def begin(self, trouble: Trouble, remark: Remark, pids: Callable[[], List[int]], past: Past) -> None:
        """`pids` names the processes that may be writing."""
        self.begun_ms = self._clock.mono_ms()
        self._trouble = trouble
        self._remark = remark
        self._pids = pids
        tree = scan(self._directory, self._rules.wanted)
        self._baseline = baseline_of(tree, self.records)
        self.stamps = dict(tree.files)
        """The files present at the start."""
        self._pace = pace_of(past.saves)
        shapes = [shape_of_manifest(manifest) for manifest in past.complete]
        self.saves = Generations(tree.files.values(), shapes, self._quiet_ms)
        threading.Thread(target=self._run, name="scanner", daemon=True).start()

    def end(self) -> None:
        """The workload has ended: quiet files prove nothing from now on."""
        self._ended_ms = self._clock.mono_ms()
        self._is_ended.set()

    def _run(self) -> None:
        shortest = pause_seconds = self.scan_seconds
        while not self._is_ended.wait(pause_seconds):
            began = time.monotonic()
            try:
                self.scan()
                self._trouble.passed()
            except Exception as error:  # the workload owns the directory, which may contain anything for a while
                self._trouble.happened(error)
            pause_seconds = max(shortest, (time.monotonic() - began) * (1 / _LOOK_SHARE - 1))
        self._trouble.over()

    def scan(self) -> List[ScannedCheckpoint]:
        """Scans once. Raises `OSError` when the directory cannot be read."""
        with self._lock:
            now = _First(self._clock.mono_ms(), self._progress.step(), is_full(self._directory))
            declaration = self._newest_declaration()
            if declaration is not None:
                self.seen = self._declared(declaration, now)
                return self.seen
            tree = scan(self._directory, self._rules.wanted)
            self.left_out = tree.left_out
            self.records.observe(
                tree, lambda path: looks_like_text(os.path.join(self._directory, path)), now.at_ms, now.step
            )
            selections = select(tree, self._baseline, self.records)
            self._known = {each.signature: self._known.get(each.signature, now) for each in selections}
            seen = self._seen(selections, now)
            self.seen = seen + self._held(seen, now)
            return self.seen

    def _seen(self, selections: List[Selection], now: _First) -> List[ScannedCheckpoint]:
        if not selections:
            return []
        newest = selections[0]
        step = self._step_when_written(newest, self._known[newest.signature])
        epoch = self._progress.epoch_at(_told_by_ms(newest))
        generation = self.saves.observe(Scan(newest, now.at_ms, step, now.is_disk_full, epoch))
        if generation is not None:
            self._note_held(generation, now.at_ms)
        found = [self._seen_as(newest, self._known[newest.signature], now, generation)] if generation else []
        for older in selections[1:]:
            first = self._known[older.signature]
            found.append(self._seen_as(older, first, now, self._followed(older, first)))
        return found

    def _step_when_written(self, selection: Selection, first: _First) -> Optional[int]:
        """Returns the highest step that the program can have reached when it wrote the newest file."""
        told = self._progress.step_at(_told_by_ms(selection))
        return first.step if told is None else told

    def _followed(self, selection: Selection, first: _First) -> Generation:
        """Returns the generation of a checkpoint that another one has already followed."""
        stamps = set(selection.changed.values())
        for closed in self.saves.closed:
            if set(closed.files.values()) == stamps:
                return closed
        generation = Generation(0, dict(selection.changed), first.at_ms, self._step_when_written(selection, first))
        generation.is_superseded = True
        generation.is_doubtful = first.is_disk_full
        generation.selection = selection
        return generation

    def standing(self, seen: ScannedCheckpoint, ended_well: Optional[bool]) -> Standing:
        """Returns the state of a checkpoint; `ended_well` is None while the workload runs."""
        if seen.is_declared:
            return Standing(Evidence(COMPLETE, "declared", "the program declared it"))
        if seen.directory == self._hold.folder:
            return self._standing_of_held(seen)
        generation = seen.generation
        if not generation.is_doubtful and not self._rules.markers:
            name = min(generation.files, default="")
            if self.is_live(seen):
                return Standing(Evidence(COMPLETE, "format", "%s is a database with a log, whole at any time" % name))
            is_quiet = seen.until_ms - generation.changed_ms >= self._quiet_ms
            if (is_quiet or ended_well is not None) and self.is_database(seen):
                why = "and the program has ended" if ended_well is not None else "copied between two of its changes"
                return Standing(Evidence(COMPLETE, "format", "%s is a database, %s" % (name, why)))
        if generation.is_superseded and seen.until_ms - seen.since_ms < self._quiet_ms and ended_well is None:
            return Standing(None)
        now = Circumstances(seen.until_ms, seen.step_then, self._open_file, ended_well, self._read_world_size)
        return self._judge.judge(seen.selection, generation, self.saves, now)

    def standing_of_uploaded(self, generation: Generation) -> Standing:
        """Returns the current state of a generation that was uploaded earlier."""
        if generation.selection is None:
            return Standing(None)
        until_ms = self._clock.mono_ms() if self._ended_ms is None else self._ended_ms
        now = Circumstances(until_ms, self._progress.step(), self._open_file, None, self._read_world_size)
        return self._judge.judge(generation.selection, generation, self.saves, now)

    def step_in(self, seen: ScannedCheckpoint) -> Optional[int]:
        """Returns the step recorded in the contents."""
        return self._judge.formats.judge(seen.selection, seen.generation.files).step

    def _standing_of_held(self, seen: ScannedCheckpoint) -> Standing:
        contents = self._held_formats.judge(seen.selection, seen.generation.files)
        if contents.torn is not None or seen.generation.is_doubtful:
            return Standing(None, contents.torn or "the disk was full when it was written")
        if seen.until_ms - seen.since_ms < self._quiet_ms:
            return Standing(None)
        is_proven = self._is_hold_proof or (contents.proof is not None and len(seen.generation.files) == 1)
        return Standing(Evidence(COMPLETE if is_proven else SETTLED, "next", "the next checkpoint started"))

    def _read_world_size(self) -> Optional[int]:
        """Launchers such as torchrun start every process with it. Remembered, because the processes may have ended."""
        if self._world_size is None:
            self._world_size = world_size_of(self._pids())
        return self._world_size

    def _open_file(self, selection: Selection) -> Optional[str]:
        """Returns words about a file of the checkpoint that a process has open for writing. A file that is only appended to, or stays open
        while all other files are quiet, counts as a record from now on."""
        open_files = open_for_writing(self._pids())
        now_ms = self._clock.mono_ms()
        found = None
        for path, stamp in selection.files.items():
            key = (stamp.device, stamp.inode)
            if key not in open_files or self.records(path):
                self._open_since_ms.pop(key, None)
                continue
            opened: OpenFile = open_files[key]
            since_ms = self._open_since_ms.setdefault(key, now_ms)
            is_beside_others = len(selection.signature) > 1
            if is_beside_others and (opened.is_append or now_ms - since_ms >= _OPEN_QUIETS * self._quiet_ms):
                self.records.learn(path)
                self._remark(
                    "%s is held open by pid %d: uploading it as is" % (path, opened.pid)
                )
            else:
                found = "%s is held open for writing by pid %d" % (path, opened.pid)
        return found

    def _note_held(self, generation: Generation, now_ms: int) -> None:
        """A program may pause while it writes a file in place. Querying all processes is slow, so it happens only during short pauses and
        for the files found then."""
        quiet_ms = now_ms - generation.changed_ms
        if quiet_ms < self._quiet_ms // 2 or not (generation.held or quiet_ms <= 2 * self._quiet_ms):
            return
        open_files = open_for_writing(self._pids())
        keys = {path: (stamp.device, stamp.inode) for path, stamp in generation.files.items()}
        generation.held = {
            path for path, key in keys.items() if key in open_files and not open_files[key].is_append
        }

    def interval_ms(self) -> Optional[int]:
        """Returns the usual time between two saves; before the second save of this attempt, the value from earlier attempts, if any."""
        own_ms = self.saves.interval_ms()
        return self._pace.usual_ms(self._progress.ms_per_step()) if own_ms is None else own_ms

    def trained_since_ms(self) -> int:
        """Returns when the program began to train (monotonic) according to its output, otherwise when it was started."""
        first_ms = self._progress.first_step_at_ms
        return self.begun_ms if first_ms is None else self._clock.mono_ms() - (self._clock.wall_ms() - first_ms)

    def is_live(self, seen: ScannedCheckpoint) -> bool:
        """Whether it consists of databases that may be written at any time and are copied whole nevertheless."""
        return self._are_all(seen.generation, has_wal)

    def is_database(self, seen: ScannedCheckpoint) -> bool:
        """Whether it consists of databases: a program keeps them open, so that nothing but a copy ends a save."""
        return self._are_all(seen.generation, is_sqlite)

    def _are_all(self, generation: Generation, is_one: Callable[[str], bool]) -> bool:
        return bool(generation.files) and all(is_one(os.path.join(self._directory, path)) for path in generation.files)

    def databases(self, selection: Selection) -> Dict[str, FileStamp]:
        """Returns the databases with a log among its files: they are records that a program resumes from."""
        return {
            path: stamp
            for path, stamp in selection.files.items()
            if self.records(path) and has_wal(os.path.join(self._directory, path))
        }

    def is_still(self, seen: ScannedCheckpoint) -> bool:
        """Whether its files are unchanged since that scan."""
        if seen.directory == self._hold.folder:
            with self._lock:
                return self._hold.selection == seen.selection and self._hold.is_intact()
        signatures = [again.selection.signature for again in self.scan() if again.directory == seen.directory]
        return seen.selection.signature in signatures

    def is_written_since(self, wall_ms: int) -> bool:
        """Whether a file of the newest checkpoint was written after that instant."""
        seen = self.scan()
        return bool(seen) and newest_change_ns(seen[0].selection) > wall_ms * 1_000_000

    def uploaded(self, seen: ScannedCheckpoint) -> None:
        """Releases held files that are older than this checkpoint."""
        with self._lock:
            self._uploaded_since_ms = seen.since_ms
            if self._held_since.at_ms <= seen.since_ms:
                self._hold.release()

    def _held(self, seen: List[ScannedCheckpoint], now: _First) -> List[ScannedCheckpoint]:
        newest = seen[0] if seen else None
        if newest is not None:
            self._rhythm.observe(serious_files(newest.selection), now.at_ms, self._clock.wall_ms())
        is_intact = self._hold.is_intact()
        if not is_intact or now.at_ms - self._held_since.at_ms > _HOLD_MS + self._quiet_ms:
            if now.at_ms - self._held_since.at_ms < self._quiet_ms:
                self._hold.in_place |= self._hold.changed()
            if newest is None or newest.since_ms <= self._uploaded_since_ms:
                self._hold.release()
                return []
            if not self._take(newest, now) and not self._take_followed(seen[1:], now):
                return []
        held = self._hold.selection
        if newest is not None and held is not None and not self._is_held_like(held, newest.selection):
            # The held file was the first file of a checkpoint with several files.
            self._hold.release()
            return []
        if held is None or any(held.signature == each.selection.signature for each in seen):
            return []
        generation = self._followed(held, self._held_since) if self._is_hold_proof else _unproven(held, self._held_since)
        # A file next to those of the save may have been written long before.
        generation.written_ns = max(generation.written_ns, self._held_ns)
        return [self._seen_as(held, self._held_since, now, generation)._replace(directory=self._hold.folder)]

    def _take(self, newest: ScannedCheckpoint, now: _First) -> bool:
        """Holds the newest checkpoint if the next save will prove it whole, or if it is probably whole at this moment."""
        files = serious_files(newest.selection)
        is_linked = self._hold.in_place.isdisjoint(files)
        often = self._rhythm.often(files, now.at_ms)
        self._held_ns = min((stamp.modified_ns for stamp in often.values()), default=0)
        self._is_hold_proof = single_file(newest.selection) is not None and is_linked
        if not self._is_hold_proof:
            is_whole = self._rhythm.is_whole(files, now.at_ms, self._clock.wall_ms()) and newest.selection.odd is None
            if not is_whole or self._is_being_written(newest.selection):
                self._hold.release()
                return False
            self._is_hold_proof = len(often) == 1 and is_linked
        self._held_since = now._replace(step=newest.generation.step)
        return self._hold.take(self._directory, newest.selection)

    def _take_followed(self, followed: List[ScannedCheckpoint], now: _First) -> bool:
        """Holds the checkpoint before the newest one, which the program has finished and may delete before it is quiet for long enough.
        A second scan must have found it unchanged."""
        if not followed or self._rules.markers:
            return False
        seen = followed[0]
        shape = seen.generation.shape
        is_whole = self.saves.is_first_kind or self.saves.is_like_complete(shape) or self.saves.is_like_before(shape)
        is_new = self._uploaded_since_ms < seen.since_ms < now.at_ms
        if not (is_new and is_whole) or seen.selection.odd is not None or self._is_being_written(seen.selection):
            return False
        self._held_ns, self._is_hold_proof = 0, True
        self._held_since = now._replace(step=seen.generation.step)
        return self._hold.take(self._directory, seen.selection)

    def _is_held_like(self, held: Selection, newest: Selection) -> bool:
        return single_file(held) is None or single_file(newest) is not None

    def _is_being_written(self, selection: Selection) -> bool:
        """Whether one of its files is open for writing, or a file next to them has a name of one that is not finished; also if the system
        cannot report it."""
        pids = self._pids()
        open_files = open_for_writing(pids)
        if not pids or any((stamp.device, stamp.inode) in open_files for stamp in serious_files(selection).values()):
            return True
        folders = [os.path.join(self._directory, folder) for folder in ("", *selection.folders)]
        return any(is_unfinished(name) for folder in folders if os.path.isdir(folder) for name in os.listdir(folder))

    def _seen_as(
        self, selection: Selection, first: _First, now: _First, generation: Generation, is_declared: bool = False
    ) -> ScannedCheckpoint:
        until_ms = now.at_ms if self._ended_ms is None else min(now.at_ms, self._ended_ms)
        step = self._progress.certain_step_at(generation.written_ns // 1_000_000, _UNSURE_MS)
        return ScannedCheckpoint(selection, first.at_ms, until_ms, step, is_declared, self._directory, generation, now.step)

    def _declared(self, declaration: _Declaration, now: _First) -> List[ScannedCheckpoint]:
        tree = scan_declared(self._directory, declaration.path, self._rules.wanted.walls)
        around = scan(self._directory, self._rules.wanted)
        self.left_out = around.left_out
        selection = select_declared(tree, declaration.path, declaration.step, around, declaration.written_ns)
        if selection is None or newest_change_ns(selection) > declaration.written_ns:
            return []  # the program is rewriting it; the next declaration reports when it is complete
        first = self._known.get(selection.signature, now)
        self._known = {selection.signature: first}
        generation = Generation(0, dict(selection.changed), first.at_ms, declaration.step)
        generation.selection = selection
        return [self._seen_as(selection, first, now, generation, is_declared=True)]

    def _newest_declaration(self) -> Optional[_Declaration]:
        found: List[_Declaration] = []
        for name in os.listdir(self._saved) if os.path.isdir(self._saved) else []:
            path = os.path.join(self._saved, name)
            try:
                body, status = read_plain(path)
                told = parse(HELPER_SAVED, body)
                found.append(_Declaration(status.st_mtime_ns, told["step"], told["path"]))
            except (OSError, ValueError):
                continue  # not ours, or not whole
        newest = max(found, default=None)
        for declaration in found:
            if declaration != newest:
                self._forget(declaration.step)
        return newest

    def _forget(self, step: int) -> None:
        try:
            os.unlink(os.path.join(self._saved, "%d.json" % step))
        except OSError:
            pass


def _told_by_ms(selection: Selection) -> int:
    """When (wall clock) everything that the program had printed before its newest change has been read."""
    return newest_change_ns(selection) // 1_000_000 + _TELLING_MS


def _unproven(held: Selection, since: _First) -> Generation:
    """Returns a generation that no later scan can prove whole."""
    generation = Generation(0, dict(held.changed), since.at_ms, since.step)
    generation.is_superseded = True
    generation.is_doubtful = since.is_disk_full
    return generation
