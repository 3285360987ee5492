"""One job from its first attempt to its last, on machines that die, over a line and into a store that do what they like. Each
attempt must begin with the newest good checkpoint, byte by byte."""

import contextlib
import hashlib
import json
import os
import random
import threading
from types import SimpleNamespace
from typing import Dict, List, Optional, Set, Tuple
from unittest import mock

from bucket import Bucket, Death, Line, Request
from small_parts import PART_BYTES
from support import FakeClock
from training import WAYS, Content, Training, content_of

from crucible_runner import retry, s3_transfer, transfer
from crucible_runner.checkpoint.sending import Settings
from crucible_runner.checkpoint.uploads import Checkpoints
from crucible_runner.keys import CheckpointId, Keys, parse_checkpoint_id
from crucible_runner.checkpoint.looks import Looks, Rules
from crucible_runner.paths import Paths
from crucible_runner.progress import Progress
from crucible_runner.checkpoint.restore import Found, Restorer
from crucible_runner.retry import GaveUp, Patience
from crucible_runner.s3_store import S3Store

JOB = "job-torn"
QUIET_MS = 2_000
# How a checkpoint of a training that has paused in the midst of saving would look complete: nobody pauses so long.
_PAUSE_MS_MAX = 900
_TICK_MS = 400
_ATTEMPTS_MAX = 4
_SAVES_MAX = 5
_FAULTS = ("lost", "unheard", "repeated", "delayed", "torn")


class Broken(BaseException):
    """A promise was. The runner, which goes on after whatever goes wrong, must not catch it."""


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

    # What happens beside the runner, whenever time passes.

    def pass_time(self, ms: int = 0) -> None:
        left_ms = ms or self.dice.randrange(_TICK_MS)
        while left_ms > 0:
            self._clock.advance(min(left_ms, _TICK_MS))
            left_ms -= _TICK_MS
            if self._is_restoring:
                continue
            self._train()
            self._look()
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

    def _look(self) -> None:
        if self._deeds is not None and self._clock.mono_ms() - self._looked_ms >= 1_000:
            self._looked_ms = self._clock.mono_ms()
            self._looks.look()

    def _others(self) -> None:
        """The control plane thins out; requests arrive that nobody waits for any more."""
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
                pass  # nobody hears the answer

    def _manifests(self) -> Dict[str, str]:
        """By key, in the order in which they were put."""
        objects = self._bucket.objects
        return {key: objects[key].body.decode("utf-8", "replace") for key in objects if "/manifest." in key}

    def _delete(self, key: str) -> None:
        """Of a checkpoint that goes, the manifest goes first."""
        self._count("deleted")
        self._bucket.objects.pop(key, None)
        name = self._name(key)
        if self._keys.manifest(parse_checkpoint_id(name)) in self._bucket.objects and name not in self._touched:
            raise Broken("%s was deleted before its manifest" % key)

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
        """What the store or the network has spoilt is nobody's fault."""
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
        if ask.key != self._keys.manifest(checkpoint):
            return
        self._count("manifests")
        if name not in self._touched and self._content(checkpoint) not in self._whole:
            raise Broken("%s has a manifest and is not whole" % name)

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
        for path in (paths.checkpoints, paths.saved, paths.tmp):
            os.makedirs(path)
        return paths

    def _restore(self, paths: Paths) -> Found:
        expected = self._newest_good()
        keys = Keys(JOB, self._attempt)
        restorer = Restorer(self._store, keys, JOB, Patience(lambda: False, lambda: False))
        self._is_restoring = True
        try:
            found = restorer.restore(
                self._attempt, paths.checkpoints, paths.restoring, self._clock, lambda words: None
            )
        finally:
            self._is_restoring = False
        got = (found.restored and found.restored.checkpoint, content_of(paths.checkpoints))
        if got != (expected or (None, frozenset())):
            raise Broken("restored %s, not %s" % (got, expected))
        self._restored = found.restored and found.restored.checkpoint
        self._count("restored", expected is not None)
        return found

    def _newest_good(self) -> Optional[Tuple[CheckpointId, Content]]:
        """What stands in the bucket, compared with what trainings have saved; nothing of the runner's looks at it."""
        names = {self._name(key) for key in self._bucket.keys(self._keys.checkpoints)}
        for checkpoint in sorted(map(parse_checkpoint_id, names), reverse=True):
            if self._keys.manifest(checkpoint) not in self._bucket.objects:
                self._count("without a manifest passed over")
                continue
            content = self._content(checkpoint)
            if content in self._whole:
                return checkpoint, content
            self._count("damaged passed over")
        return None

    def _content(self, checkpoint: CheckpointId) -> Optional[Content]:
        try:
            body = self._bucket.objects[self._keys.manifest(checkpoint)].body
            manifest = json.loads(body.decode("utf-8"))
            objects = {
                entry["path"]: self._bucket.objects[self._keys.checkpoint_file(checkpoint, entry["path"])].body
                for entry in manifest["files"]
            }
            is_told = all(_is_told(entry, objects[entry["path"]]) for entry in manifest["files"])
            # Where the name of the digest is what was damaged, nothing else is.
            before = hashlib.sha256(body.rpartition(b'"sha256"')[0]).hexdigest()
            is_told = is_told and manifest.get("sha256", before) == before
        except (ValueError, KeyError, TypeError):
            return None
        belongs = [manifest.get(name) for name in ("jobId", "step", "attempt")] == [JOB, *checkpoint]
        return frozenset(objects.items()) if is_told and belongs else None

    def _work(self, paths: Paths, found: Found) -> None:
        name = "machine %s" % os.path.basename(paths.root)
        self._training = Training(self.dice, self._way, paths.checkpoints, name, self._whole)
        self._training.step = self._restored.step if self._restored is not None else 0
        self._deeds = self._training.deeds(self.dice.randrange(1, _SAVES_MAX + 1))
        self._deed_ms = self._looked_ms = self._clock.mono_ms()
        self._thinned = self._restored
        self._progress = Progress(paths.progress, self._clock)
        self._looks = Looks(paths, paths.checkpoints, Rules(QUIET_MS), self._clock, self._progress)
        every_ms = self.dice.choice((0, 0, 5_000))
        settings = Settings(JOB, self._attempt, paths.checkpoints, paths.staging, every_ms)
        self._checkpoints = Checkpoints(settings, self._looks, self._store, Keys(JOB, self._attempt))
        self._checkpoints._wake = SimpleNamespace(wait=lambda seconds: self.pass_time(int(seconds * 1000)), set=int)
        with mock.patch.object(threading.Thread, "start", lambda thread: None):
            self._checkpoints.begin(found, self._clock, lambda words: None, lambda: [])
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
                raise GaveUp("there was no time left")
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
