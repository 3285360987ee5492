"""Decides whether the files of a save are a checkpoint: complete, provisional, or neither, and why."""

import os
from functools import lru_cache
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from ..clock import in_words
from ..globs import matches_any
from .formats import Folder, FolderVerdict, Verdict, check_file, check_folder
from .formats.base import build
from .generations import Generation, Generations, shape_of, unfinished_member
from .names import is_record
from .ranks import has_ranks, missing_rank
from .scan import FileStamp, Selection

# Files without a verifiable format may make up this share of a generation that its format proves whole: settings, small states.
_UNPROVEN_SHARE = 0.1
# Without progress reports, a program counts as training again once its files have been quiet for this many times the quiet time.
_SETTLED_QUIETS = 6
# A pause within a save may be this many times the longest pause seen so far.
_PAUSE_FACTOR = 1.5
# A training that has made this many steps since the last write has finished the save.
_STEPS_GONE_ON = 2

COMPLETE, SETTLED, QUIET = "complete", "settled", "quiet"
TRUST = (QUIET, SETTLED, COMPLETE)
"""In ascending order of trust."""


class Evidence(NamedTuple):
    """The state of a generation and the reason for it."""

    state: str
    kind: str
    text: str

    @property
    def trust(self) -> int:
        return TRUST.index(self.state)

    def document(self) -> dict:
        return {"state": self.state, "evidence": {"kind": self.kind, "text": self.text}}


class Standing(NamedTuple):
    """The outcome of a check: evidence, or the reason why it is still missing."""

    evidence: Optional[Evidence]
    hindrance: str = ""
    """A clause for people; empty when nothing is wrong and it is only too early."""


class Circumstances(NamedTuple):
    """Facts that a check uses in addition to the files."""

    now_ms: int
    """Monotonic; once the workload has ended, the time of its end."""
    step: Optional[int]
    open_file: Callable[[Selection], Optional[str]]
    """Words about a file that a process still has open for writing, else None."""
    ended_well: Optional[bool]
    """None while the workload runs."""
    world_size: Callable[[], Optional[int]] = lambda: None
    """The number of processes that write the checkpoint, if the program's environment says so."""


class Contents(NamedTuple):
    """Findings from the contents of a generation. Each text is a clause for people, or None."""

    proof: Optional[str]
    """The proof that its files are whole."""
    is_folder_proof: bool
    """The proof comes from a format of whole folders: then none of its files can be missing."""
    torn: Optional[str]
    """A truncated file."""
    missing: Optional[str]
    """A missing file that programs of this kind usually write, too."""
    step: Optional[int]
    may_be_settings: bool = False
    """The proof covers only files that may be settings and contain no training state."""
    is_one_written: bool = False
    """It is one file, written to its end."""


class Formats:
    """Checks the contents of files and caches the result until they change."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._check_file = lru_cache(maxsize=16384)(self._check_stamped)

    def _check_stamped(self, path: str, _stamp: FileStamp) -> Optional[Verdict]:
        return check_file(os.path.join(self._directory, path))

    def judge(self, selection: Selection, files: Dict[str, FileStamp]) -> Contents:
        """Checks the contents of `files`, a generation of the selection."""
        verdicts = self._of_folders(selection, files)
        step = next((verdict.step for verdict in verdicts if verdict.step is not None), None)
        missing = next((verdict.text for verdict in verdicts if not verdict.is_whole), None)
        torn = None
        vouched: Set[str] = set()
        for verdict in verdicts:
            vouched |= verdict.paths if verdict.is_whole else set()
        proof = next((verdict.text for verdict in verdicts if verdict.is_whole), None)
        proven = total = 0
        heaviest = -1
        has_work = bool(vouched)
        for path, stamp in files.items():
            total += stamp.size
            verdict = self._check_file(path, stamp)
            if verdict is not None and not verdict.is_whole:
                torn = torn or "%s %s" % (path, verdict.text)
            if verdict is not None or path in vouched:
                proven += stamp.size
                has_work = has_work or (verdict is not None and not verdict.may_be_settings)
                if verdict is not None and stamp.size > heaviest and not vouched:
                    heaviest, proof = stamp.size, "%s %s" % (path, verdict.text)
        only = self._check_file(*next(iter(files.items()))) if len(files) == 1 else None
        is_one_written = only is not None and only.is_written_last
        is_proven = total > 0 and proven >= (1 - _UNPROVEN_SHARE) * total and torn is None and missing is None
        return Contents(proof if is_proven else None, bool(vouched), torn, missing, step, not has_work, is_one_written)

    def _of_folders(self, selection: Selection, files: Dict[str, FileStamp]) -> List[FolderVerdict]:
        sizes = {path: stamp.size for path, stamp in selection.files.items()}
        found = []
        for folder in _folders(build(self._directory, sizes)):
            if any(_is_near(path, folder) for path in files):
                found += [verdict for verdict in check_folder(folder) if not verdict.paths.isdisjoint(files)]
        return found


def _folders(root: Folder) -> List[Folder]:
    found, waiting = [], [root]
    while waiting:
        folder = waiting.pop()
        found.append(folder)
        waiting += folder.folders.values()
    return found


def _is_near(path: str, folder: Folder) -> bool:
    return folder.path == "" or path.startswith(folder.path + "/")


class Judge:
    """Classifies generations."""

    def __init__(self, directory: str, quiet_ms: int, markers: Sequence[str]) -> None:
        self._quiet_ms = quiet_ms
        self._markers = list(markers)
        self.formats = Formats(directory)

    def judge(self, selection: Selection, generation: Generation, saves: Generations, now: Circumstances) -> Standing:
        """Classifies the newest generation, or one that another generation has followed."""
        if generation.is_doubtful:
            return Standing(None, "the disk was full when it was written")
        if self._markers:
            return self._by_marker(selection, generation, now)
        contents = self.formats.judge(selection, generation.files)
        if contents.torn is not None:
            return Standing(None, contents.torn)
        if selection.odd is not None and contents.proof is None:
            return Standing(None, selection.odd)
        shape = generation.shape
        is_like = saves.is_like_complete(shape)
        if generation.is_superseded:
            return self._superseded(selection, generation, saves)
        if saves.is_minor(shape):
            return Standing(None)
        if now.ended_well:
            return Standing(Evidence(COMPLETE, "end", "the program ended cleanly"))
        unfinished = unfinished_member(selection.files)
        if unfinished is not None:
            contents = contents._replace(proof=None, missing=contents.missing or unfinished)
        quiet_ms = now.now_ms - generation.changed_ms
        needed_ms = int(saves.pause_ms * _PAUSE_FACTOR)
        rank = self._missing_rank(selection, generation, saves, now)
        if rank is not None:
            # The rank that writes the last file of a format, such as rank 0, does not wait for the others.
            contents = contents._replace(proof=None, missing="%s is not there yet" % rank)
        is_proven = contents.proof is not None and (is_like or contents.is_folder_proof)
        if quiet_ms < (self._quiet_ms // 2 if is_proven else self._quiet_ms):
            if now.ended_well is None or not contents.is_one_written or contents.proof is None or not saves.is_first_kind:
                return Standing(None, contents.missing or "")
            # Without it, a program that is ended just after its first save would begin at the beginning.
            return Standing(Evidence(QUIET, "format", contents.proof))
        if all(is_record(path) for path in generation.files):
            # A program whose state is a log of results or a database resumes from the part that it has written.
            return Standing(Evidence(SETTLED, "quiet", "it only grows, and nothing changed for %s" % in_words(quiet_ms)))
        held = now.open_file(selection) if now.ended_well is None else None
        if held is not None:
            return Standing(None, held)
        gone_on = _gone_on(generation, now.step)
        settled = self._settled(gone_on, quiet_ms, max(needed_ms, _SETTLED_QUIETS * self._quiet_ms))
        if rank is not None and gone_on is None:
            settled = None
        is_first_work = contents.proof is not None and saves.is_first_kind and not contents.may_be_settings
        if is_proven or (is_first_work and settled is not None):
            return Standing(Evidence(COMPLETE, "format", contents.proof or ""))
        if settled is not None:
            return Standing(settled)
        if contents.proof is not None:
            return Standing(Evidence(QUIET, "format", contents.proof))
        return Standing(Evidence(QUIET, "quiet", contents.missing or "nothing changed for %s" % in_words(quiet_ms)))

    def _missing_rank(self, selection: Selection, generation: Generation, saves: Generations, now: Circumstances) -> Optional[str]:
        # Each rank writes in every save, but of other pieces a save may change only some.
        files = generation.files if has_ranks(generation.files) else selection.files
        before = saves.complete_shapes[-1].sizes if saves.complete_shapes else ()
        return missing_rank(files, before, now.world_size())

    def _settled(self, gone_on: Optional[int], quiet_ms: int, needed_ms: int) -> Optional[Evidence]:
        if gone_on is not None:
            return Evidence(SETTLED, "went-on", "the program trained on for %d steps" % gone_on)
        if quiet_ms >= needed_ms:
            return Evidence(SETTLED, "quiet", "nothing changed for %s" % in_words(quiet_ms))
        return None

    def _superseded(self, selection: Selection, generation: Generation, saves: Generations) -> Standing:
        shape = generation.shape
        if saves.is_minor(shape):
            return Standing(None)
        whole = shape_of({**_sizes(selection.files), **_sizes(generation.files)})
        is_whole = saves.is_first_kind or saves.is_like_complete(whole)
        if is_whole or saves.is_like_before(shape):
            return Standing(Evidence(COMPLETE, "next", "the next checkpoint started"))
        return Standing(None, "it is much smaller than earlier checkpoints")

    def _by_marker(self, selection: Selection, generation: Generation, now: Circumstances) -> Standing:
        """When the job file names a marker for complete checkpoints, only the marker counts."""
        missing = [glob for glob in self._markers if not _has_marker(glob, generation)]
        if missing:
            if generation.is_superseded or now.now_ms - generation.changed_ms < self._quiet_ms:
                return Standing(None, "%s is not there" % missing[0])
            held = now.open_file(selection) if now.ended_well is None else None
            if held is not None:
                return Standing(None, held)
            return Standing(Evidence(QUIET, "quiet", "%s is not there" % missing[0]))
        return Standing(Evidence(COMPLETE, "marker", "%s is there" % self._markers[0]))


def _sizes(files: Dict[str, FileStamp]) -> Dict[str, int]:
    return {path: stamp.size for path, stamp in files.items()}


def _gone_on(generation: Generation, step: Optional[int]) -> Optional[int]:
    if step is None or generation.step is None or step - generation.step < _STEPS_GONE_ON:
        return None
    return step - generation.step


def _has_marker(glob: str, generation: Generation) -> bool:
    """Whether this save has written a file whose path, or the end of its path, matches the glob."""
    return any(matches_any(path, [glob, "**/" + glob]) for path in generation.files)

