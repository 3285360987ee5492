"""Lists the files of a checkpoint directory and selects those of the newest checkpoint."""

import errno
import os
import posixpath
import stat
from typing import Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

from ..documents import is_utf8
from ..globs import matches_any
from ..walls import NO_WALLS, Walls
from .databases import join_wal
from .names import Unit, is_ignored, is_record, is_unfinished, unit_of
from .pointers import read_pointers

# Errors of files that vanish during the scan, and of links that are dangling or circular.
_NOWHERE = (errno.ENOENT, errno.ELOOP)

# Errors of members that the runner may not read, or whose path is too long for the system.
_REFUSED = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EIO)

# Checkpoints scanned in addition to the newest one. Each costs a pass over all files, and thousands would keep a core busy.
_OLDER_MAX = 50

IsRecord = Callable[[str], bool]


class FileStamp(NamedTuple):
    """The attributes that change when a file is written."""

    size: int
    modified_ns: int
    inode: int
    device: int
    mode: int

    @property
    def content(self) -> tuple:
        """Equal for a file and its copy with the same times."""
        return (self.size, self.modified_ns)


class FolderStamp(NamedTuple):
    mode: int
    modified_ns: int


class Tree(NamedTuple):
    """The files and links of a directory, by paths relative to it, with forward slashes."""

    files: Dict[str, FileStamp]
    links: Dict[str, str]
    """Symbolic links inside the directory: path and target, both relative."""
    pointers: Mapping[str, FrozenSet[str]] = {}
    """Text files that name numbered files or folders: maps their paths to the named paths."""
    folders: Mapping[str, FolderStamp] = {}
    odd: Mapping[str, str] = {}
    """Members that cannot be stored, by a path for people, with the reason as a clause for people."""
    elsewhere: Mapping[str, str] = {}
    """Likewise, links that lead out of the checkpoint: nothing that the program has written is missing without them."""

    @property
    def left_out(self) -> Mapping[str, str]:
        return {**self.odd, **self.elsewhere}


class Filter(NamedTuple):
    """The directory filters of the job file: `checkpoint.include` and `checkpoint.exclude`."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    walls: Walls = NO_WALLS
    """Files outside these directories are not part of a checkpoint, even through links."""

    def admits(self, path: str) -> bool:
        if self.include and not matches_any(path, self.include):
            return False
        return not matches_any(path, self.exclude)


class Selection(NamedTuple):
    """The files that make one checkpoint."""

    files: Dict[str, FileStamp]
    links: Dict[str, str]
    resume_path: str
    step: Optional[int]
    """The step in the names, if any."""
    epoch: Optional[int]
    signature: FrozenSet[tuple]
    """Changes whenever the checkpoint changes; records do not count."""
    changed: Dict[str, FileStamp]
    """Its files that were not present at the start, without records."""
    older: Mapping[str, FileStamp] = {}
    """Other files that the program still keeps and would find at a restart: above all older numbered files and folders."""
    older_links: Mapping[str, str] = {}
    folders: Mapping[str, FolderStamp] = {}
    """The folders of all these files, and empty ones: programs find those too."""
    odd: Optional[str] = None
    """A clause about a member of its numbered files and folders that cannot be stored: then only a proof makes it a checkpoint."""


def scan(directory: str, wanted: Filter = Filter()) -> Tree:
    """Lists everything in the directory that can be part of a checkpoint. Files that vanish during the scan are left out."""
    if not wanted.walls.holds(directory):
        return Tree({}, {})
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return Tree({}, {})
    tree = _collect(directory, [name for name in names if not is_ignored(name)], wanted)
    return tree._replace(pointers=read_pointers(directory, tree.files))


def scan_declared(directory: str, path: str, walls: Walls = NO_WALLS) -> Tree:
    """Like `scan`, for a path that the workload has declared as one checkpoint."""
    if not walls.holds(os.path.join(directory, path)):
        return Tree({}, {})
    wanted = Filter(walls=walls)
    return scan(directory, wanted) if path == "." else _collect(directory, [path], wanted)


def select(tree: Tree, baseline: FrozenSet[tuple], is_record: IsRecord = is_record) -> List[Selection]:
    """Returns the checkpoints in the directory, newest first; none when nothing differs from `baseline`, the signature of the files at the
    start.

    The newest checkpoint has all files, except that of numbered units of one kind it has only the one written last. Older units form
    checkpoints of their own, together with the other files that existed before the next unit was begun. The units that are older than
    those of a checkpoint are its `older`: they prove nothing about it.
    """
    # Files that were only moved count as unchanged.
    known = {item[1] for item in baseline}
    changed = {path: stamp for path, stamp in tree.files.items() if stamp not in known and not is_record(path)}
    is_link_new = any(link not in baseline for link in tree.links.items())
    if not changed and not is_link_new:
        return []
    units: Dict[str, Dict[Unit, int]] = {}
    for path, stamp in tree.files.items():
        unit = unit_of(path)
        if unit is not None:
            ages = units.setdefault(unit.kind, {})
            # Files from before the start do not compete with files written since, however high their number.
            ages[unit] = max(ages.get(unit, -1), stamp.modified_ns if path in changed else -1)
    ranked = {kind: sorted(ages, key=lambda unit: (ages[unit], unit.name.number), reverse=True) for kind, ages in units.items()}
    newest = {unit for ordered in ranked.values() for unit in ordered[:1]}
    # The target of a link, or of a file such as `latest`, that does not yet point to the newest checkpoint is kept.
    kept = newest | _led_to(tree)
    selections = [_with_older(_selection(tree, lambda path: _is_of(path, kept), changed, is_record), tree, lambda path: True)]
    for number in _older_numbers(ranked, units, newest)[:_OLDER_MAX]:
        selections += _older(tree, number, units, changed, is_record)
    return selections


def _is_of(path: str, units: Iterable[Unit]) -> bool:
    unit = unit_of(path)
    return unit is None or unit in units


def _older_numbers(ranked: Dict[str, List[Unit]], units: Dict[str, Dict[Unit, int]], newest: Iterable[Unit]) -> List[tuple]:
    """Returns rank and number of units that were written since the start and followed by something newer, newest first."""
    current = {unit.name for unit in newest}
    older = {}
    for kind, ordered in ranked.items():
        for unit in ordered[1:]:
            written_ns = units[kind][unit]
            if written_ns >= 0 and unit.name not in current:
                older[unit.name] = max(older.get(unit.name, -1), written_ns)
    return sorted(older, key=lambda name: older[name], reverse=True)


def _older(
    tree: Tree, number: tuple, units: Dict[str, Dict[Unit, int]], changed: Dict[str, FileStamp], is_record: IsRecord
) -> List[Selection]:
    """Returns the checkpoint of an older number if the files without a number are unchanged since then."""
    ours = {unit for ages in units.values() for unit in ages if unit.name == number}
    written_ns = max(units[unit.kind][unit] for unit in ours)
    newer = {
        unit for ages in units.values() for unit, age_ns in ages.items() if age_ns > written_ns and unit.name != number
    }
    begun_ns = min(
        (stamp.modified_ns for path, stamp in tree.files.items() if unit_of(path) in newer), default=written_ns
    )
    for path, stamp in changed.items():
        if unit_of(path) is None and stamp.modified_ns > begun_ns:
            return []
    led_to = _led_to(tree)
    if any(units.get(unit.kind, {}).get(unit, written_ns + 1) > written_ns for unit in led_to):
        return []  # a link or a file such as `latest` already points elsewhere
    kept = ours | led_to
    selection = _selection(tree, lambda path: _is_of(path, kept), changed, is_record)
    return [_with_older(selection, tree, lambda path: unit_of(path) not in newer)]


def _with_older(selection: Selection, tree: Tree, is_older: Callable[[str], bool]) -> Selection:
    return selection._replace(
        older={path: stamp for path, stamp in tree.files.items() if path not in selection.files and is_older(path)},
        older_links={path: target for path, target in tree.links.items() if path not in selection.links and is_older(path)},
        folders={path: stamp for path, stamp in tree.folders.items() if is_older(path)},
    )


def _led_to(tree: Tree) -> Set[Unit]:
    """Returns the numbered files and folders that links or text files point to."""
    targets = {_target_of(link, target) for link, target in tree.links.items()}
    for named in tree.pointers.values():
        targets |= named
    return {unit for unit in map(unit_of, targets) if unit is not None}


def _target_of(link: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(link), target))


def select_declared(tree: Tree, path: str, step: int, around: Optional[Tree] = None, declared_ns: int = 0) -> Optional[Selection]:
    """Returns the checkpoint that the workload has declared. Of `around`, the whole directory, the units and other files that were
    finished when it did so are its `older`."""
    if not tree.files:
        return None
    changed = {each: stamp for each, stamp in tree.files.items() if not is_record(each)}
    selection = _selection(tree, lambda _: True, changed, is_record)._replace(resume_path=path, step=step)
    if around is None:
        return selection
    late = {unit_of(each) or each for each, stamp in around.files.items() if stamp.modified_ns > declared_ns}
    return _with_older(selection, around, lambda each: (unit_of(each) or each) not in late)


def _selection(
    tree: Tree, belongs: Callable[[str], bool], changed: Dict[str, FileStamp], is_record: IsRecord
) -> Selection:
    files = {path: stamp for path, stamp in tree.files.items() if belongs(path)}
    links = {path: target for path, target in tree.links.items() if belongs(path)}
    serious = [path for path in files if not is_record(path)]
    ours = {path: files[path] for path in serious if path in changed}
    signature = frozenset((path, files[path]) for path in serious) | frozenset(links.items())
    units = {unit_of(path) for path in ours or serious} - {None}
    odd = next(("%s cannot be saved (%s)" % each for each in sorted(tree.odd.items()) if unit_of(each[0]) in units), None)
    rank = max((unit.name.rank for unit in units), default=0)
    leading = [unit for unit in units if unit.name.rank == rank]
    name = max((unit.name for unit in leading), default=None)
    tops = {path.partition("/")[0] for path in [*serious, *links]}
    if len(leading) == 1:
        resume_path = leading[0].path
    else:
        resume_path = tops.pop() if len(tops) == 1 and not leading else "."
    step, epoch = (name.step, name.epoch) if name is not None else (None, None)
    return Selection(files, links, resume_path, step, epoch, signature, ours, folders=tree.folders, odd=odd)


def _collect(directory: str, paths: List[str], wanted: Filter) -> Tree:
    tree = Tree({}, {}, folders={}, odd={}, elsewhere={})
    # The walk uses no recursion, because folders can be nested more deeply than Python's recursion limit.
    waiting = [path for path in paths if not matches_any(path, wanted.exclude)]
    while waiting:
        path = waiting.pop()
        try:
            inner = _note(directory, path, tree, wanted)
            waiting += [path for path in inner if not is_unfinished(posixpath.basename(path))]
        except OSError as error:
            if error.errno in _REFUSED:
                tree.odd[shown(path)] = "it cannot be read: %s" % error.strerror
            elif error.errno not in _NOWHERE:
                raise
    join_wal(directory, tree.files)
    return tree


def _note(directory: str, path: str, tree: Tree, wanted: Filter) -> List[str]:
    """Adds a file or a link to the tree. Returns the entries of a folder."""
    full = os.path.join(directory, path)
    status = os.lstat(full)
    if not is_utf8(path):
        if wanted.admits(shown(path)) and not stat.S_ISFIFO(status.st_mode) and not stat.S_ISSOCK(status.st_mode):
            tree.odd[shown(path)] = "its name is not UTF-8: rename it"
        return []
    if stat.S_ISLNK(status.st_mode):
        target = _inner_target(directory, path)
        if target is not None:
            if wanted.admits(path) and is_utf8(target):
                tree.links[path] = target
            elif wanted.admits(path):
                tree.odd[shown(path)] = "the name of its target is not UTF-8: rename that"
            return []
        is_inside = wanted.walls.holds(full)
        if is_inside:
            status = os.stat(full)
        if not is_inside or stat.S_ISDIR(status.st_mode):
            if wanted.admits(path):
                tree.elsewhere[shown(path)] = "it leads out of the checkpoint directory"
            return []
    if stat.S_ISREG(status.st_mode):
        if wanted.admits(path):
            if not _may_read(full, status):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            tree.files[path] = _stamp(status)
    elif stat.S_ISDIR(status.st_mode):
        inner = [path + "/" + name for name in os.listdir(full)]
        tree.folders[path] = FolderStamp(stat.S_IMODE(status.st_mode), status.st_mtime_ns)
        return inner
    return []


def _may_read(path: str, status: os.stat_result) -> bool:
    is_own = status.st_uid == os.geteuid() and status.st_mode & stat.S_IRUSR
    return bool(is_own) or os.access(path, os.R_OK)


def shown(path: str) -> str:
    """Returns the path as people can read it, whatever its encoding."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _stamp(status: os.stat_result) -> FileStamp:
    mode = stat.S_IMODE(status.st_mode)
    return FileStamp(status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev, mode)


def single_file(selection: Selection) -> Optional[str]:
    """Returns the path of the only file that counts; None when there are several."""
    paths = [path for path, _ in selection.signature] if not selection.links else []
    return paths[0] if len(paths) == 1 else None


def serious_files(selection: Selection) -> Dict[str, FileStamp]:
    """Returns the files that count: all but records."""
    return {path: stamp for path, stamp in selection.signature if path in selection.files}


def stamp_of(path: str) -> FileStamp:
    return _stamp(os.stat(path))


def _inner_target(directory: str, path: str) -> Optional[str]:
    """Returns the target of a link, relative to its folder, when the target is inside the checkpoint directory."""
    target = os.readlink(os.path.join(directory, path))
    folder = posixpath.dirname(path)
    if os.path.isabs(target):
        target = os.path.relpath(target, os.path.join(directory, folder))
    led = posixpath.normpath(posixpath.join(folder, target))
    return None if led.startswith("../") or led == ".." else target


def baseline_of(tree: Tree, is_record: IsRecord = is_record) -> FrozenSet[tuple]:
    files = ((path, stamp) for path, stamp in tree.files.items() if not is_record(path))
    return frozenset(files) | frozenset(tree.links.items())


def newest_change_ns(selection: Selection) -> int:
    """Returns when the newest of the files that count was written, by the file system's clock."""
    return max((stamp.modified_ns for stamp in selection.changed.values()), default=0)
