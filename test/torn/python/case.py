"""One job from its first attempt to its last, on machines that die, over a line and into a store that do what they like. Each
attempt must begin with the newest good checkpoint, byte by byte."""

import contextlib
import hashlib
import json
import os
import random
import threading
from types import SimpleNamespace
from typing import Dict, List, NamedTuple, Optional, Set, Tuple
from unittest import mock

from bucket import Bucket, Death, Line, Request
from small_parts import PART_BYTES
from support import FakeClock
from training import WAYS, Content, Training, content_of

from crucible_runner.store import retry

from crucible_runner.store.s3 import parts as s3_transfer

from crucible_runner.store import transfer
from crucible_runner.checkpoint.sending import Settings
from crucible_runner.checkpoint.uploads import Checkpoints
from crucible_runner.checkpoint.evidence import COMPLETE, SETTLED
from crucible_runner.keys import CheckpointId, Keys, parse_checkpoint_id, stored_at
from crucible_runner.checkpoint.names import unit_of
from crucible_runner.checkpoint.scanner import Scanner, Rules
from crucible_runner.paths import Paths
from crucible_runner.progress import Progress
from crucible_runner.checkpoint.restore import StoredCheckpoints, Restorer
from crucible_runner.store.retry import GaveUp, Patience
from crucible_runner.store.s3.s3_store import S3Store

JOB = "job-torn"
QUIET_MS = 2_000
# How a checkpoint of a training that has paused in the middle of saving would look complete: no program pauses that long.
_PAUSE_MS_MAX = 900
_TICK_MS = 400
_ATTEMPTS_MAX = 4
_SAVES_MAX = 5
_FAULTS = ("lost", "unheard", "repeated", "delayed", "torn")


class Broken(BaseException):
    """A promise was. The runner, which continues after any error, must not catch it."""


class Revision(NamedTuple):
    """A manifest that can be read."""

    key: str
    manifest: dict
    stored: List[str]
    """Where its files are, in their order."""
    folders: Set[str]
    """Of the checkpoints in which they are."""


class Good(NamedTuple):
    """A revision of a checkpoint that holds what a training has saved, as it stands in the bucket."""

    checkpoint: CheckpointId
    state: str
    content: Content


class Case:
    def __init__(self, seed: int, folder: str, thin_out) -> None:
        """`thin_out` answers which keys the control plane would delete, and in which order."""
        self.dice = random.Random(seed)
        self._folder = folder
        self._thin_out = thin_out
        self.counts: Dict[str, int] = {}
        self._bucket = Bucket()
        self._clock = FakeClock()
        self._way = self.dice.choice(WAYS)
        self._fault_chance = self.dice.choice((0.0, 0.03, 0.1, 0.25))
        self._torn_chance = self.dice.choice((0.1, 0.5))
        self._death_chance = self.dice.choice((0.0, 0.005, 0.02))
        self._keep = self.dice.randrange(1, 4)
        self._whole: Set[Content] = set()
        self._late: List[Request] = []
        self._touched: Set[str] = set()
        self._doomed: List[str] = []
        self._has_flipped = False
        self._is_restoring = False
        self._keys = Keys(JOB, 1)

    def run(self) -> Dict[str, int]:
        with in_turn(self):
            self._live()
        return self.counts

    def _live(self) -> None:
        attempt = 1
        for number in range(self.dice.randrange(1, _ATTEMPTS_MAX + 1)):
            self._machine(number, attempt)
            # A runner may be started again for the same attempt, on the same machine or after a loss of its directory.
            attempt += self.dice.random() < 0.7
        self._death_chance = 0.0
        self._restore(self._begin("last", attempt + 1))

    # What happens outside the runner, whenever time passes.

    def pass_time(self, ms: int = 0) -> None:
        left_ms = ms or self.dice.randrange(_TICK_MS)
        while left_ms > 0:
            self._clock.advance(min(left_ms, _TICK_MS))
            left_ms -= _TICK_MS
            if self._is_restoring:
                continue
            self._train()
            self._scan()
            self._others()
        if self.dice.random() < self._death_chance:
            self._count("deaths")
            raise Death()

    def _train(self) -> None:
        now_ms = self._clock.mono_ms()
        must = self._training.is_saving and now_ms - self._deed_ms >= _PAUSE_MS_MAX - _TICK_MS
        if self._deeds is None or not (must or self.dice.random() < 0.5):
            return
        self._deed_ms = now_ms
        self._training.now_ns = max(self._training.now_ns, self._clock.wall_ms() * 1_000_000)
        is_killed = self._training.is_saving and self.dice.random() < 0.01
        if not is_killed and next(self._deeds, self) is not self:
            self._progress.see([b"step %d" % self._training.step])
            return
        self._deeds = None
        self._count("killed in the midst of saving", is_killed)
        left_ms = self.dice.choice((None, None, self.dice.randrange(1, 20_000)))
        until_ms = None if left_ms is None else now_ms + left_ms
        self._checkpoints.finish(
            not is_killed, lambda: None if until_ms is None else until_ms - self._clock.mono_ms()
        )

    def _scan(self) -> None:
        if self._deeds is not None and self._clock.mono_ms() - self._looked_ms >= 1_000:
            self._looked_ms = self._clock.mono_ms()
            self._scanner.scan()

    def _others(self) -> None:
        """The control plane thins out; requests arrive after their senders gave up."""
        newest = self._checkpoints.newest
        if newest != self._thinned and newest is not None and self.dice.random() < 0.5:
            self._thinned = newest
            self._doomed += self._thin_out(
                {
                    "keys": self._bucket.keys("jobs/"),
                    "manifests": self._manifests(),
                    "attempt": self._attempt,
                    "restored": self._restored and self._restored.document(),
                    "keep": self._keep,
                }
            )
        while self._doomed and self.dice.random() < 0.6:
            self._delete(self._doomed.pop(0))
        if self._late and self.dice.random() < 0.2:
            self._count("arrived late")
            request = self._late.pop(self.dice.randrange(len(self._late)))
            self.touch(request.ask.key)
            try:
                self._bucket.obey(request)
            except Exception:
                pass  # the answer is lost

    def _manifests(self) -> Dict[str, str]:
        """By key, in the order in which they were put."""
        objects = self._bucket.objects
        return {key: objects[key].body.decode("utf-8", "replace") for key in objects if "/manifest." in key}

    def _delete(self, key: str) -> None:
        """No file goes before the manifests that refer to it."""
        self._count("deleted")
        self._bucket.objects.pop(key, None)
        for name in self._names():
            for revision in self._revisions(parse_checkpoint_id(name)):
                if key in revision.stored and not self._touched.intersection(revision.folders):
                    raise Broken("%s was deleted before %s" % (key, revision.key))

    # What the line asks.

    def fault_of(self, ask) -> Optional[str]:
        if self.dice.random() >= self._fault_chance:
            return None
        fault = self.dice.choice(_FAULTS)
        if fault == "torn" and self.dice.random() >= self._torn_chance:
            fault = "lost"
        self._count(fault)
        return fault

    def delay(self, request: Request) -> None:
        if request.ask.method != "GET":
            self._late.append(request)

    def touch(self, key: str) -> None:
        """What the store or the network has spoilt is no fault of the runner."""
        if key.startswith(self._keys.checkpoints):
            self._touched.add(self._name(key))

    def may_flip(self) -> bool:
        """Once in a case: what arrives damaged twice is taken for damaged."""
        may, self._has_flipped = not self._has_flipped, True
        return may

    def obeyed(self, ask) -> None:
        if ask.method not in ("PUT", "POST") or not ask.key.startswith(self._keys.checkpoints):
            return
        name = self._name(ask.key)
        checkpoint = parse_checkpoint_id(name)
        if checkpoint.attempt != self._attempt:
            raise Broken("attempt %d wrote %s" % (self._attempt, ask.key))
        if "/manifest." not in ask.key:
            return
        self._count("manifests")
        revision = self._revision(checkpoint, ask.key)
        folders = revision.folders if revision is not None else {name}
        if not self._touched.intersection(folders) and not self._is_whole(self._content(revision)):
            raise Broken("%s was put and describes something incomplete" % ask.key)

    def _name(self, key: str) -> str:
        return key[len(self._keys.checkpoints) :].partition("/")[0]

    # One runner, from its start until it or its machine ends.

    def _machine(self, number: int, attempt: int) -> None:
        paths = self._begin("machine-%d" % number, attempt)
        try:
            found = self._restore(paths)
            self._work(paths, found)
        except Death:
            pass
        # The watch that deletes has either come to the end of it, or ended with its worker.
        if self.dice.random() < 0.5:
            for key in self._doomed:
                self._delete(key)
        self._doomed = []
        kept = self._restored
        if kept is not None and self._keys.manifest(kept) not in self._bucket.objects:
            raise Broken("%s was deleted, from which a live attempt was restored" % kept.name)

    def _begin(self, name: str, attempt: int) -> Paths:
        self._attempt, self._restored = attempt, None
        self._store = S3Store(Line(self._bucket, self), "", mock.sentinel.grants)
        paths = Paths(os.path.join(self._folder, name))
        for path in (paths.checkpoints, paths.saved, paths.near):
            os.makedirs(path)
        return paths

    def _restore(self, paths: Paths) -> StoredCheckpoints:
        good = self._good()
        keys = Keys(JOB, self._attempt)
        restorer = Restorer(self._store, keys, JOB, Patience(lambda: False, lambda: False))
        self._is_restoring = True
        try:
            found = restorer.restore(
                self._attempt, paths.checkpoints, paths.restoring, self._clock, lambda words: None, QUIET_MS
            )
        finally:
            self._is_restoring = False
        self._restored = found.restored and found.restored.checkpoint
        self._judge(good, content_of(paths.checkpoints))
        return found

    def _judge(self, good: List[Good], content: Content) -> None:
        """What was restored is whole. It is the newest that proved complete, or one that is newer; without any such one it is
        what has settled, or nothing."""
        got = self._restored
        # What has settled counts where nothing complete stands before it: it may be a part of what a whole one holds.
        must = next((one for one in good if one.state == COMPLETE), None)
        must = must or next((one for one in good if one.state == SETTLED), None)
        if got is None:
            if content or must is not None:
                raise Broken("restored %s, not %s" % (sorted(path for path, _ in content), must and must.checkpoint))
            return
        self._count("restored")
        # What is damaged in the store may arrive whole: a second damage has undone the first.
        if not self._is_whole(content):
            raise Broken("restored %s, which is not whole" % got.name)
        if must is not None and got.age < must.checkpoint.age:
            raise Broken("restored %s, not %s" % (got.name, must.checkpoint.name))
        self._count("restored what is not proven complete", must is None or got != must.checkpoint)

    def _good(self) -> List[Good]:
        """What stands in the bucket, newest first, compared with what trainings have saved; nothing of the runner's looks at it."""
        found = []
        for checkpoint in sorted(map(parse_checkpoint_id, self._names()), key=lambda each: each.age, reverse=True):
            revisions = self._revisions(checkpoint)
            if not any("/manifest." in key for key in self._bucket.keys(self._keys.checkpoint(checkpoint))):
                self._count("without a manifest passed over")
            for revision in revisions:
                content = self._content(revision)
                if self._is_whole(content):
                    found.append(Good(checkpoint, revision.manifest["state"], content))
                else:
                    self._count("damaged passed over")
            self._count("damaged passed over", not revisions)
        return found

    def _names(self) -> Set[str]:
        return {self._name(key) for key in self._bucket.keys(self._keys.checkpoints)}

    def _revisions(self, checkpoint: CheckpointId) -> List[Revision]:
        """Those whose manifest can be read, newest first."""
        keys = [key for key in self._bucket.keys(self._keys.checkpoint(checkpoint)) if "/manifest." in key]
        revisions = [self._revision(checkpoint, key) for key in keys]
        told = [each for each in revisions if each is not None]
        return sorted(told, key=lambda each: each.manifest["revision"], reverse=True)

    def _revision(self, checkpoint: CheckpointId, key: str) -> Optional[Revision]:
        try:
            body = self._bucket.objects[key].body
            manifest = json.loads(body.decode("utf-8"))
            # Where the name of the digest is what was damaged, nothing else is.
            before = hashlib.sha256(body.rpartition(b'"sha256"')[0]).hexdigest()
            places = [entry.get("storedAt") or stored_at(checkpoint, entry["path"]) for entry in manifest["files"]]
            folders = {checkpoint.name}.union(place.partition("/")[0] for place in places)
            belongs = [manifest.get(name) for name in ("jobId", "step", "attempt")] == [JOB, *checkpoint]
            if not belongs or manifest.get("sha256", before) != before or "state" not in manifest:
                return None
            return Revision(key, manifest, [self._keys.stored_file(place) for place in places], folders)
        except (ValueError, KeyError, TypeError):
            return None

    def _is_whole(self, content: Optional[Content]) -> bool:
        """Whether each of its units is as a training has saved it: the newest, and older ones that the training had kept."""
        units: Dict[Optional[str], Set[Tuple[str, bytes]]] = {}
        for path, body in content or ():
            units.setdefault(unit_of(path), set()).add((path, body))
        return bool(units) and all(frozenset(unit) in self._whole for unit in units.values())

    def _content(self, revision: Optional[Revision]) -> Optional[Content]:
        if revision is None:
            return None
        entries = revision.manifest["files"]
        try:
            bodies = [self._bucket.objects[key].body for key in revision.stored]
            is_told = all(_is_told(entry, body) for entry, body in zip(entries, bodies))
            return frozenset(zip((entry["path"] for entry in entries), bodies)) if is_told else None
        except (ValueError, KeyError, TypeError):
            return None

    def _work(self, paths: Paths, found: StoredCheckpoints) -> None:
        name = "machine %s" % os.path.basename(paths.root)
        self._training = Training(self.dice, self._way, paths.checkpoints, name, self._whole)
        self._training.step = self._restored.step if self._restored is not None else 0
        self._deeds = self._training.deeds(self.dice.randrange(1, _SAVES_MAX + 1))
        self._deed_ms = self._looked_ms = self._clock.mono_ms()
        self._thinned = self._restored
        self._progress = Progress(paths.progress, self._clock)
        self._scanner = Scanner(paths, paths.checkpoints, Rules(QUIET_MS), self._clock, self._progress)
        every_ms = self.dice.choice((0, 0, 5_000))
        settings = Settings(JOB, self._attempt, paths.checkpoints, paths.staging, every_ms)
        self._checkpoints = Checkpoints(settings, self._scanner, self._store, Keys(JOB, self._attempt))
        self._checkpoints._wake = SimpleNamespace(wait=lambda seconds: self.pass_time(int(seconds * 1000)), set=int)
        with mock.patch.object(threading.Thread, "start", lambda thread: None):
            self._checkpoints.begin(found, self._clock, lambda words: None, lambda: [os.getpid()])
        self._checkpoints._run()

    def _count(self, what: str, times: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + times


def _is_told(entry: dict, body: bytes) -> bool:
    """Whether the manifest tells the truth: what it says wrongly of a good file makes no good checkpoint."""
    parts = [hashlib.sha256(body[at : at + PART_BYTES]) for at in range(0, len(body), PART_BYTES)]
    digest = hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest()
    told = (entry["sizeBytes"], entry["parts"], entry["digest"])
    return told == (len(body), [part.hexdigest() for part in parts], digest)


def in_turn(case: Case):
    """Threads take turns that the dice decide, and waiting is time that passes for everybody."""

    def run_parallel(tasks, is_over, threads):
        waiting = list(tasks)
        case.dice.shuffle(waiting)
        for task in waiting:
            if is_over():
                raise GaveUp("no time was left")
            task()

    def wait(pauses, is_over):
        case.pass_time(int(pauses._seconds * 1000))
        pauses._seconds = min(pauses._seconds * 2, retry._LONGEST_PAUSE_SECONDS)

    now = SimpleNamespace(
        monotonic=lambda: case._clock.mono_ms() / 1000, sleep=lambda seconds: case.pass_time(int(seconds * 1000))
    )
    patches = contextlib.ExitStack()
    patches.enter_context(mock.patch.multiple(transfer, run_parallel=run_parallel, time=now))
    patches.enter_context(mock.patch.object(retry.Pauses, "wait", wait))
    patches.enter_context(mock.patch.object(s3_transfer, "time", now))
    return patches
