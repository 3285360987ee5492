"""Groups the files that were written together in one save, and finds when the next save began. Pure: scans and instants are arguments."""

from collections import deque
from typing import Deque, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set

from .names import is_record, member_of, template, unit_of
from .scan import FileStamp, Selection

# A save with less than this share of the bytes of an earlier one, in the same files, counts as less complete than that one.
_SIZE_SHARE = 0.9
# A file that is rewritten in place grows by less than this factor per save; a file that grows more is still being written.
_GROWTH_SHARE = 1.05
# A save with less than this share of the bytes of another one is a part of a save, or a side file.
_SERIOUS_SHARE = 0.5
# Number of recent generations to remember, whether or not they were saves.
_BEGUN_KEPT = 16
# Files that grow by this factor are of a large save that is still being written.
_GROWING = 1.01
# Number of earlier saves to compare a new one with.
_SHAPES_KEPT = 5
_CLOSED_KEPT = 4
# Number of preceding members to compare a numbered member with; these must resemble each other.
_MEMBERS_COMPARED = 2


class Shape(NamedTuple):
    """The files of a save: bytes by path, with the numbers in names ignored."""

    sizes: Dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.sizes.values())

    def covers(self, older: "Shape") -> bool:
        """Whether this shape contains all files of the older one, at a similar size."""
        ours = sum(self.sizes.get(each, 0) for each in older.sizes)
        return all(each in self.sizes for each in older.sizes) and ours >= _SIZE_SHARE * older.total


def shape_of(sizes: Dict[str, int]) -> Shape:
    """Builds the shape from sizes by path."""
    result: Dict[str, int] = {}
    for path, size in sizes.items():
        result[template(path)] = result.get(template(path), 0) + size
    return Shape(result)


def unfinished_member(files: Dict[str, FileStamp]) -> Optional[str]:
    """Returns words about numbered folders or files, such as `50/`, when the newest of them lacks files of the earlier ones."""
    parts: Dict[tuple, Dict[str, str]] = {}
    written_ns: Dict[tuple, int] = {}
    for path, stamp in files.items():
        member = member_of(path)
        if member is not None and not is_record(path):
            key = (member.folder, member.number)
            parts.setdefault(key, {})[member.part] = path
            written_ns[key] = max(written_ns.get(key, 0), stamp.modified_ns)
    if not parts:
        return None
    newest, *before = sorted(parts, key=lambda key: (written_ns[key], key), reverse=True)
    alike = [parts[key] for key in before if key[0] == newest[0] and parts[key].keys() > parts[newest].keys()][:_MEMBERS_COMPARED]
    others = [parts[key] for key in before if key[0] == newest[0]][:_MEMBERS_COMPARED]
    if not alike or alike != others or any(each.keys() != alike[0].keys() for each in alike):
        return None
    missing = sorted(alike[0].keys() - parts[newest].keys())[0]
    return "%s has no matching file yet" % alike[0][missing]


class Generation:
    """The files of one save."""

    def __init__(
        self, number: int, files: Dict[str, FileStamp], now_ms: int, step: Optional[int], epoch: Optional[float] = None
    ) -> None:
        self.number = number
        self.files = files
        """Its written files, as last seen."""
        self.first_ms = now_ms
        self.serious_ms = now_ms
        """The scan (monotonic) that saw the main part of it begin: settings may have been written long before."""
        self.burst_ms = now_ms
        """The scan (monotonic) that saw it begin, or resume after a pause."""
        self.changed_ms = now_ms
        """The scan (monotonic) that saw its last change."""
        self.wrote_ms = now_ms
        """The scan (monotonic) that saw its last change other than a deletion."""
        self.wrote_at_step = step
        self.wrote_in_epoch = epoch
        self.paths = set(files)
        """All paths that it has written, including files deleted since."""
        self.step = step
        """The highest step that the program can have reached at its last change."""
        self.written_ns = min((stamp.modified_ns for stamp in files.values()), default=0)
        """When the first of its files was written, as first seen: the save had begun by then (the file system's clock)."""
        self.is_doubtful = False
        """The disk was full while it was written, so files may be missing."""
        self.held: Set[str] = set()
        """Files that a process still had open for writing after the last change: the next write to them belongs to this save."""
        self.is_proven = False
        """It has proved complete."""
        self.is_superseded = False
        """The next save has begun."""
        self.selection: Optional[Selection] = None
        """The checkpoint that contains it, as last seen."""

    @property
    def shape(self) -> Shape:
        return shape_of({path: stamp.size for path, stamp in self.files.items()})

    @property
    def total(self) -> int:
        return sum(stamp.size for stamp in self.files.values())

    def unfinished(self) -> Optional[str]:
        """Returns words about files missing in comparison with earlier saves of the same checkpoint; None when nothing is missing."""
        return unfinished_member(self.selection.files) if self.selection is not None else None

    @property
    def save_ms(self) -> int:
        return self.changed_ms - self.first_ms


class Scan(NamedTuple):
    """The newest checkpoint as one scan found it."""

    selection: Selection
    at_ms: int
    step: Optional[int]
    is_disk_full: bool
    epoch: Optional[float] = None
    """The highest epoch that the program can have reached at the newest change."""


class Generations:
    """Follows the saves of a program from scan to scan."""

    def __init__(self, baseline: Iterable[FileStamp], shapes: Sequence[Shape], quiet_ms: int) -> None:
        """`baseline` holds the files present at the start; `shapes` those of earlier complete checkpoints, newest first."""
        self._before: Set[FileStamp] = set(baseline)
        self._quiet_ms = quiet_ms
        self.current: Optional[Generation] = None
        self.closed: Deque[Generation] = deque(maxlen=_CLOSED_KEPT)
        """Generations that were followed by another, newest last."""
        self.complete_shapes: Deque[Shape] = deque(reversed(shapes), maxlen=_SHAPES_KEPT)
        self._begun: Deque[Generation] = deque(maxlen=_BEGUN_KEPT)
        self._bursts_ms: Deque[int] = deque(maxlen=_SHAPES_KEPT)
        """The times of writes that followed a quiet period."""
        self.pause_ms = 0
        """The longest pause seen within one save, from one change to the next."""
        self.restless_since_ms: Optional[int] = None
        """Since when (monotonic) files are written again without growing and without a quiet moment; None while that is not so."""
        self._most_bytes = 0

    def observe(self, scan: Scan) -> Optional[Generation]:
        """Processes a scan. Returns the generation that is being written or was written last."""
        # Files that were only moved, for example to make room for the next save, count as unchanged.
        changed = {path: stamp for path, stamp in scan.selection.changed.items() if stamp not in self._before}
        current = self.current
        if current is None:
            if changed:
                self._begin(changed, scan)
        else:
            ours = set(current.files.values())
            fresh = [path for path, stamp in changed.items() if stamp not in ours]
            if fresh and self._is_next(current, fresh, changed, scan):
                current.is_superseded = True
                self.closed.append(current)
                self._before.update(current.files.values())
                self._begin({path: changed[path] for path in fresh if changed[path] not in self._before}, scan)
            elif fresh or len(changed) != len(current.files):
                pause_ms = scan.at_ms - current.changed_ms
                if fresh and pause_ms >= self._quiet_ms:
                    self._bursts_ms.append(scan.at_ms)
                    current.burst_ms = scan.at_ms
                    self.pause_ms = max(self.pause_ms, pause_ms)
                    written = sum(changed[path].size for path in fresh)
                    if current.total < _SERIOUS_SHARE * written:
                        current.serious_ms = scan.at_ms
                    if scan.step != current.step and written >= _SERIOUS_SHARE * current.total:
                        # The save cannot be distinguished from its predecessor.
                        current.written_ns = min(changed[path].modified_ns for path in fresh)
                current.files = changed
                if fresh:
                    current.wrote_ms = scan.at_ms
                    current.wrote_at_step, current.wrote_in_epoch = scan.step, scan.epoch
                    current.paths.update(fresh)
                current.held = set()
                current.changed_ms = scan.at_ms
                current.step = scan.step
        if self.current is not None:
            self.current.selection = scan.selection
            if scan.is_disk_full and self.current.changed_ms == scan.at_ms:
                self.current.is_doubtful = True
        self._note_restlessness(scan.at_ms)
        return self.current

    def _note_restlessness(self, at_ms: int) -> None:
        current = self.current
        if current is None or at_ms - current.changed_ms >= self._quiet_ms:
            self.restless_since_ms, self._most_bytes = None, 0
        elif self.restless_since_ms is None or current.total > _GROWING * self._most_bytes:
            self.restless_since_ms, self._most_bytes = at_ms, current.total

    def _begin(self, files: Dict[str, FileStamp], scan: Scan) -> None:
        before = self.closed[-1].number if self.closed else 0
        number = max(before, self.current.number if self.current is not None else 0) + 1
        self.current = Generation(number, files, scan.at_ms, scan.step, scan.epoch)
        self._begun.append(self.current)
        self._bursts_ms.append(scan.at_ms)

    def _is_next(self, current: Generation, fresh: List[str], changed: Dict[str, FileStamp], scan: Scan) -> bool:
        """Whether the changes belong to the next save rather than to the one being written."""
        was_quiet = scan.at_ms - current.wrote_ms >= self._quiet_ms
        are_steps_known = None not in (current.wrote_at_step, scan.step)
        # Programs that print no steps, as with Keras, may print their epochs.
        then, now = (current.wrote_at_step, scan.step) if are_steps_known else (current.wrote_in_epoch, scan.epoch)
        has_trained = None not in (then, now) and then != now
        is_over = was_quiet and (has_trained or (current.is_proven and not are_steps_known))
        # Paths that differ only in their numbers or alternate, such as `50/model` and `60/model`, or `a.pt` and `b.pt`.
        siblings = {template(path) for path in current.paths} if is_over else set()
        units = {unit_of(path) for path in current.files} - {None}
        kinds = {unit.kind for unit in units}
        for path in fresh:
            unit = unit_of(path)
            if unit is not None and unit.kind in kinds and unit not in units:
                return True
            old, new = current.files.get(path), changed[path]
            if old is None:
                if path not in current.paths and template(path) in siblings:
                    return True
                continue
            if old.inode != new.inode:
                return True
            if was_quiet and path not in current.held and (has_trained or new.size <= old.size * _GROWTH_SHARE):
                return True
        return False

    def close(self, generation: Generation) -> None:
        """The next change belongs to a new save: the files of this one were whole and are stored."""
        if self.current is generation:
            self.closed.append(generation)
            self._before.update(generation.files.values())
            self.current = None

    def accept(self, generation: Generation) -> None:
        """Marks the generation as complete; later ones are compared with it."""
        generation.is_proven = True
        shape = generation.shape
        if shape not in self.complete_shapes:
            self.complete_shapes.append(shape)

    def is_like_complete(self, shape: Shape) -> bool:
        """Whether the shape covers that of some earlier complete generation."""
        return any(shape.covers(older) for older in self.complete_shapes)

    def is_like_before(self, shape: Shape) -> bool:
        """Whether the two saves before it were equally small, which means that saves have become smaller."""
        before = [closed.shape for closed in self.closed][-2:]
        return len(before) == 2 and all(shape.covers(each) and each.covers(shape) for each in before)

    @property
    def is_first_kind(self) -> bool:
        return not self.complete_shapes

    def is_minor(self, shape: Shape) -> bool:
        """Whether it is much smaller than every complete one, such as a settings file, and so not a separate checkpoint."""
        smallest = min((each.total for each in self.complete_shapes), default=0)
        return shape.total * 2 < smallest

    def _begun_ms(self) -> List[int]:
        totals = [generation.total for generation in self._begun]
        serious = _SERIOUS_SHARE * max(totals, default=0)
        begun = [generation.serious_ms for generation, total in zip(self._begun, totals) if total >= serious]
        return begun[-_SHAPES_KEPT:]

    def interval_ms(self) -> Optional[int]:
        """Returns the usual time from the beginning of one save to that of the next; None before the second save."""
        for begun in (self._begun_ms(), list(self._bursts_ms)):
            pauses = sorted(after - before for before, after in zip(begun, begun[1:]))
            if pauses:
                return pauses[len(pauses) // 2]
        return None
