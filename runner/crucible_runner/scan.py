"""What a checkpoint directory holds, and which of it is the newest checkpoint."""

import errno
import os
import posixpath
import stat
from typing import Dict, FrozenSet, List, NamedTuple, Optional

from .names import Name, is_ignored, is_record, read_name


# What vanishes meanwhile, and links that lead to nothing or round in a circle.
_NOWHERE = (errno.ENOENT, errno.ELOOP)


class FileStamp(NamedTuple):
    """What changes when a file is written."""

    size: int
    modified_ns: int
    inode: int
    device: int
    mode: int


class Entry(NamedTuple):
    """A file or a folder directly in the checkpoint directory."""

    name: str
    order: Name
    files: Dict[str, FileStamp]
    """By path relative to the checkpoint directory, with forward slashes."""
    links: Dict[str, str]
    """Symbolic links inside the checkpoint: path and target, both relative."""

    def signature(self) -> FrozenSet[tuple]:
        """Changes when the entry changes; records do not count."""
        files = ((path, stamp) for path, stamp in self.files.items() if not is_record(path))
        return frozenset(files) | frozenset(self.links.items())


class Selection(NamedTuple):
    """The files that make one checkpoint."""

    files: Dict[str, FileStamp]
    links: Dict[str, str]
    resume_path: str
    step: Optional[int]
    """Where the names tell it."""
    epoch: Optional[int]
    signature: FrozenSet[tuple]


def scan(directory: str) -> List[Entry]:
    """Everything in the directory that can be part of a checkpoint. What vanishes meanwhile is left out."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    entries = []
    for name in names:
        if not is_ignored(name):
            entry = Entry(name, read_name(name), {}, {})
            _collect(directory, name, entry)
            if entry.files or entry.links:
                entries.append(entry)
    return entries


def scan_declared(directory: str, path: str) -> List[Entry]:
    """The same for a path that the workload has declared as one checkpoint."""
    if path == ".":
        return scan(directory)
    entry = Entry(path, read_name(path), {}, {})
    _collect(directory, path, entry)
    return [entry] if entry.files else []


def select(entries: List[Entry], baseline: FrozenSet[tuple]) -> List[Selection]:
    """The checkpoints among the entries, newest first; none when nothing differs from the `baseline`, the signature of what
    was there at the start. Older ones are told apart only where nothing without a number belongs to them."""
    changed = [entry for entry in entries if not entry.signature() <= baseline]
    if not changed:
        return []
    families: Dict[str, List[Entry]] = {}
    for entry in entries:
        families.setdefault(entry.order.family, []).append(entry)
    chosen: List[Entry] = []
    for family in families.values():
        # What lay there from the start does not compete with what this attempt has written, however high its number.
        rivals = [entry for entry in family if entry in changed] or family
        chosen += _generations(rivals)[0]
    selections = [_selection(chosen)]
    serious = [entry for entry in entries if entry.signature()]
    if len({entry.order.family for entry in serious}) == 1:
        rivals = [entry for entry in serious if entry in changed]
        selections += [_selection(generation) for generation in _generations(rivals)[1:]]
    return selections


def _generations(family: List[Entry]) -> List[List[Entry]]:
    """The entries of one family by their numbers, newest first."""
    numbers = sorted({entry.order.numbers for entry in family}, reverse=True)
    return [[entry for entry in family if entry.order.numbers == each] for each in numbers]


def select_declared(entries: List[Entry], path: str, step: int) -> Optional[Selection]:
    if not entries:
        return None
    return _selection(entries)._replace(resume_path=path, step=step)


def _selection(entries: List[Entry]) -> Selection:
    files: Dict[str, FileStamp] = {}
    links: Dict[str, str] = {}
    signature: FrozenSet[tuple] = frozenset()
    for entry in entries:
        files.update(entry.files)
        links.update(entry.links)
        signature |= entry.signature()
    # What the training resumes from is the entry that tells its step, or the only one there is.
    serious = [entry for entry in entries if entry.signature()]
    rank = max((entry.order.rank for entry in serious), default=-1)
    leading = [entry for entry in serious if entry.order.rank == rank]
    resume_path = leading[0].name if len(leading) == 1 and (rank > 0 or len(serious) == 1) else "."
    order = max((entry.order for entry in leading), default=None, key=lambda name: name.numbers)
    step, epoch = (order.step, order.epoch) if order is not None else (None, None)
    return Selection(files, links, resume_path, step, epoch, signature)


def _collect(directory: str, path: str, entry: Entry) -> None:
    # Not by recursion: folders can be nested deeper than that goes.
    waiting = [path]
    while waiting:
        try:
            waiting += _note(directory, waiting.pop(), entry)
        except OSError as error:
            if error.errno not in _NOWHERE:
                raise


def _note(directory: str, path: str, entry: Entry) -> List[str]:
    """Adds a file or a link to the entry. Returns what a folder holds."""
    full = os.path.join(directory, path)
    status = os.lstat(full)
    if stat.S_ISLNK(status.st_mode):
        target = _inner_target(directory, path)
        if target is not None:
            entry.links[path] = target
            return []
        status = os.stat(full)
        if stat.S_ISDIR(status.st_mode):
            return []  # a folder somewhere else is not the checkpoint's
    if stat.S_ISREG(status.st_mode):
        entry.files[path] = _stamp(status)
    elif stat.S_ISDIR(status.st_mode):
        return [path + "/" + name for name in os.listdir(full)]
    return []


def _stamp(status: os.stat_result) -> FileStamp:
    mode = stat.S_IMODE(status.st_mode)
    return FileStamp(status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev, mode)


def single_file(selection: Selection) -> Optional[str]:
    """The path of the only file that counts, when there is only one."""
    paths = [path for path in selection.files if not is_record(path)]
    return paths[0] if len(paths) == 1 and not selection.links else None


def stamp_of(path: str) -> FileStamp:
    return _stamp(os.stat(path))


def _inner_target(directory: str, path: str) -> Optional[str]:
    """Where a link leads, relative to its folder, when that is inside the checkpoint directory."""
    target = os.readlink(os.path.join(directory, path))
    folder = posixpath.dirname(path)
    if os.path.isabs(target):
        target = os.path.relpath(target, os.path.join(directory, folder))
    led = posixpath.normpath(posixpath.join(folder, target))
    return None if led.startswith("../") or led == ".." else target


def baseline_of(entries: List[Entry]) -> FrozenSet[tuple]:
    result: FrozenSet[tuple] = frozenset()
    for entry in entries:
        result |= entry.signature()
    return result


def newest_change_ns(selection: Selection) -> int:
    """When the newest of the files was written, by the file system's clock."""
    return max(
        (stamp.modified_ns for path, stamp in selection.files.items() if not is_record(path)), default=0
    )
