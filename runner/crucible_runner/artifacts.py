"""The artifacts of a workload: its output directory and the patterns that the order names."""

import hashlib
import os
import stat
import threading
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from .amounts import in_bytes
from .checkpoint.manifest import time_of
from .checkpoint.scan import shown
from .clock import Clock
from .control.saving import Saving
from .documents import is_utf8
from .globs import remarks_about, search
from .keys import Keys
from .store.base import Store, StoreError
from .store.holes import is_nearly_all_holes
from .store.retry import GaveUp, Pauses, Remark, Trouble, persist
from .store.transfer import IsOver, upload_whole
from .walls import NO_WALLS, Walls, path_of


def _is_outside(pattern: str) -> bool:
    return os.path.isabs(pattern) or ".." in pattern.split("/")


def matches_of(work: str, patterns: List[str]) -> Dict[str, List[str]]:
    """Returns the paths that match each pattern; none for a pattern that leads outside the working directory."""
    found = search(work, [pattern for pattern in patterns if not _is_outside(pattern)])
    return {pattern: found.get(pattern, []) for pattern in patterns}


def missing_of(matches: Mapping[str, List[str]], walls: Walls = NO_WALLS) -> List[str]:
    """Returns the patterns whose files cannot be kept."""

    def can_be_kept(path: str) -> bool:
        return (os.path.isfile(path) or os.path.isdir(path)) and (not os.path.islink(path) or walls.holds(path))

    return [pattern for pattern, paths in matches.items() if not any(map(can_be_kept, paths))]


def find_artifacts(
    output: str, work: str, matches: Mapping[str, List[str]], walls: Walls = NO_WALLS
) -> Tuple[Dict[str, str], List[str], List[str]]:
    """Returns the files to keep by their path among the job's artifacts, a remark for each member that cannot be kept, and one for each
    pattern that cannot be followed."""
    found: Dict[str, str] = {}
    left_out: List[str] = []
    remarks = remarks_about(matches)
    for pattern, paths in matches.items():
        if _is_outside(pattern):
            remarks.append("the output %s is outside the working directory and is not kept" % pattern)
        elif not paths:
            remarks.append("no file matches the output %s" % pattern)
        for match in paths:
            left_out += _add(found, work, match, walls)
    # The output directory comes last: when both contain a name, the file in the output directory wins.
    for name in sorted(os.listdir(output)) if os.path.isdir(output) else []:
        left_out += _add(found, output, os.path.join(output, name), walls)
    for name in [name for name in found if not is_utf8(name)]:
        left_out.append("the artifact %s is not kept: its name is not UTF-8; rename it" % shown(name))
        del found[name]
    return found, left_out, remarks


class Outline(NamedTuple):
    """What outputs have in addition to the content of files."""

    folders: Dict[str, os.stat_result]
    links: Dict[str, str]
    """Links to folders of the same outputs, with their targets; links to files are kept as files."""

    def document(self, files: Dict[str, os.stat_result]) -> dict:
        """Returns `outputs.json` for these files."""
        folders = [{"path": path, **_entry(status)} for path, status in sorted(self.folders.items())]
        links = [{"path": path, "target": target} for path, target in sorted(self.links.items())]
        entries = [{"path": path, **_entry(status)} for path, status in sorted(files.items())]
        return {"version": 1, "files": entries, "folders": folders, "links": links}


def _entry(status: os.stat_result) -> dict:
    return {"mode": stat.S_IMODE(status.st_mode), **time_of(status.st_mtime_ns)}


def outline_of(output: str, work: str, matches: Mapping[str, List[str]]) -> Outline:
    """Lists the folders of the outputs, which follow no link."""
    outline = Outline({}, {})
    tops = [(work, match) for paths in matches.values() for match in paths]
    tops += [(output, os.path.join(output, name)) for name in (os.listdir(output) if os.path.isdir(output) else [])]
    for base, top in tops:
        waiting = [top]
        while waiting:
            path = waiting.pop()
            name = os.path.relpath(path, base).replace(os.sep, "/")
            if not is_utf8(name) or not os.path.isdir(path):
                continue
            if os.path.islink(path):
                target = os.readlink(path)
                led = os.path.normpath(os.path.join(os.path.dirname(name), target))
                if not os.path.isabs(target) and is_utf8(target) and not led.startswith(".."):
                    outline.links[name] = target
                continue
            try:
                inner = os.listdir(path)
            except OSError:
                continue  # `find_artifacts` has said so
            outline.folders[name] = os.stat(path)
            waiting += [os.path.join(path, each) for each in inner]
    return outline


def _add(found: Dict[str, str], base: str, top: str, walls: Walls) -> List[str]:
    """Adds a file, or all files in a folder. Returns a remark for each folder that cannot be read."""
    remarks = []
    # The walk uses no recursion, because folders can be nested more deeply than Python's recursion limit.
    waiting = [top]
    while waiting:
        path = waiting.pop()
        if os.path.islink(path) and not walls.holds(path):
            remarks.append("%s is not kept: it points outside the job's directories" % shown(os.path.relpath(path, base)))
        elif os.path.isfile(path):
            found[os.path.relpath(path, base).replace(os.sep, "/")] = path
        elif not os.path.isdir(path):
            remarks.append("%s is not kept: it is neither a file nor a folder" % shown(os.path.relpath(path, base)))
        elif path == top or not os.path.islink(path):
            try:
                waiting += [os.path.join(path, name) for name in os.listdir(path)]
            except OSError as error:
                remarks.append("the contents of %s are not kept: %s" % (shown(os.path.relpath(path, base)), error.strerror))
    return remarks


# Default size limit of one artifact, in GiB: about the disk size of the largest machines.
GIB_MAX = 1024
# The log announces the upload of larger files.
_LARGE_BYTES = 1 << 30
# Interval between log lines about the progress of one artifact.
_TELL_MS = 10_000


def _check_size(status: os.stat_result, gib_max: int) -> None:
    """Raises `ValueError` for a file above the size limit: reading, hashing and sending it would take hours."""
    if status.st_size > gib_max << 30:
        raise ValueError(
            "it has %d GiB, and an artifact may have %d: split it, or set CRUCIBLE_ARTIFACT_MAX for the workers"
            % (status.st_size >> 30, gib_max)
        )


def _check_holes(status: os.stat_result) -> None:
    """Raises `ValueError` for a file that is nearly all holes."""
    if is_nearly_all_holes(status):
        raise ValueError(
            "it has %d GiB, but only %d MiB are written: pack it (tar --sparse) to keep it"
            % (status.st_size >> 30, status.st_blocks * 512 >> 20)
        )


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _size_to_send(path: str, gib_max: int) -> int:
    """Returns 0 for a file that will be left out."""
    try:
        status = os.stat(path)
        _check_holes(status)
        _check_size(status, gib_max)
        return status.st_size
    except (OSError, ValueError):
        return 0


def half_of(left_ms: Callable[[], Optional[int]]) -> IsOver:
    """Returns a check that becomes true when half of the time left now has passed, or when the time was shortened: the next attempt waits
    for the result. Without a time limit the check never becomes true."""
    first_ms = left_ms()

    def is_over() -> bool:
        now_ms = left_ms()
        return first_ms is not None and now_ms is not None and now_ms <= first_ms // 2

    return is_over


class _Course:
    """Logs the progress of a long artifact every few seconds. Several threads call it."""

    def __init__(self, artifact: str, size: int, clock: Clock, remark: Remark) -> None:
        self._artifact = artifact
        self._size = size
        self._clock = clock
        self._remark = remark
        self._lock = threading.Lock()
        self._next_ms = clock.mono_ms() + _TELL_MS

    def tell(self, doing: str, done_bytes: int) -> None:
        with self._lock:
            now_ms = self._clock.mono_ms()
            if now_ms < self._next_ms:
                return
            self._next_ms = now_ms + _TELL_MS
        percent = 100 * done_bytes // max(1, self._size)
        self._remark("%s the artifact %s: %d%% of %.1f GiB" % (doing, self._artifact, percent, self._size / (1 << 30)))


class Keeper:
    """Uploads artifacts. `kept` omits the files that were not uploaded in time."""

    def __init__(
        self, store: Store, keys: Keys, clock: Clock, remark: Remark, walls: Walls = NO_WALLS, gib_max: int = GIB_MAX
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._remark = remark
        self.walls = walls
        self._gib_max = gib_max
        self._total = 0
        self._trouble = Trouble("uploading an artifact", remark, clock)
        self.kept: List[dict] = []
        self.left_out: List[str] = []
        """A remark for each file that cannot be kept."""
        self.statuses: Dict[str, os.stat_result] = {}
        """Permissions and times of the files that were kept."""
        self.saving = Saving({})
        """The progress of the uploads."""

    def keep(self, found: Dict[str, str], is_over: IsOver) -> None:
        """Raises `GaveUp` when time is over. A file that the store refuses now is retried after all the others."""
        pauses = Pauses()
        self._total = len(found)
        self.saving = Saving({name: _size_to_send(path, self._gib_max) for name, path in found.items()})
        # Small files first: an upload of hours must not delay uploads of seconds.
        waiting = sorted(found.items(), key=lambda each: (_size_of(each[1]), each[0]))
        while waiting:
            waiting = [each for each in waiting if not self._is_done(each, is_over)]
            if waiting:
                pauses.wait(is_over)
                if is_over():
                    raise GaveUp("no time was left for %d artifacts" % len(waiting))
        self._trouble.passed()

    def keep_text(self, name: str, text: bytes, is_over: IsOver) -> None:
        """Keeps a short artifact of the runner itself. Raises `GaveUp` when time is over."""
        persist(lambda: self._store.put(self._keys.artifact(name), text), is_over, self._trouble)
        self.kept.append({"path": name, "sizeBytes": len(text), "sha256": hashlib.sha256(text).hexdigest()})

    def words_of(self, found: Dict[str, str]) -> str:
        """Returns a sentence about what is going to be kept, before the first byte is sent."""
        files = "1 artifact" if len(found) == 1 else "%d artifacts" % len(found)
        sizes = [_size_of(path) for path in found.values()]
        told = (files, in_bytes(sum(sizes)), in_bytes(max(sizes, default=0)), self._gib_max)
        return "keeping %s: %s in all, %s in the largest; one artifact may have %d GiB" % told

    def _tell_of(self, name: str, status: os.stat_result) -> None:
        done = "%d of %d artifacts are kept" % (len(self.kept), self._total)
        self._remark("uploading the artifact %s (%.1f GiB); %s" % (name, status.st_size / (1 << 30), done))

    def _is_done(self, artifact: Tuple[str, str], is_over: IsOver) -> bool:
        """Uploads the artifact; returns False when the upload should be tried again."""
        name, path = artifact
        try:
            with self.walls.opened(path) as descriptor:
                status = os.fstat(descriptor)
                _check_holes(status)
                _check_size(status, self._gib_max)
                if status.st_size > _LARGE_BYTES:
                    self._tell_of(name, status)
                course = _Course(name, status.st_size, self._clock, self._remark)
                key = self._keys.artifact(name)

                def tell(doing: str, done_bytes: int) -> None:
                    self.saving.tell(doing, done_bytes)
                    course.tell(doing, done_bytes)

                digest = upload_whole(self._store, key, path_of(descriptor), is_over, tell)
                size = os.fstat(descriptor).st_size
            self.kept.append({"path": name, "sizeBytes": size, "sha256": digest})
            self.statuses[name] = status
            self.saving.settle(name, True)
        except StoreError as error:
            self._trouble.happened(error)
            self.saving.again()
            return False
        except GaveUp:
            raise
        except Exception as error:  # whatever the error is, the other artifacts are kept
            self.left_out.append("the artifact %s is not kept: %s" % (name, error))
            self._remark(self.left_out[-1])
            self.saving.settle(name, False)
        return True
