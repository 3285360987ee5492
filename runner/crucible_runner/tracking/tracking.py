"""The experiment trackers of one attempt: learns the job's runs, reports them, and lets the next attempt continue them."""

import threading
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional

from ..clock import Clock
from ..documents import BEAT, parse
from ..shapes import DocumentError
from ..store.bounded import bounded
from ..store.retry import Remark
from .mlflow import NoAnswer, Server, runs_of, server_of, tagged_context
from .runs import MLFLOW, RUNS_MAX, WANDB, TrackedRun, run_of
from .wandb import WandbRuns, folder_of_runs

# The start of the command waits at most this long for a tracking server.
_LOOKUP_MS = 15_000
_FIRST_LOOK_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 600.0


class Place(NamedTuple):
    """Where the job's program runs."""

    work: str
    may_read: Callable[[str], bool]


class Tracking:
    """First `recall`; then for one command at a time `begin` before it starts, `see` for its output, `end` after it."""

    def __init__(self, job: str, attempt: int, clock: Clock, remark: Remark, on_new: Callable[[], None]) -> None:
        """`on_new` is called when the program has started another run."""
        self._job = job
        self._attempt = attempt
        self._clock = clock
        self._remark = remark
        self._lock = threading.Lock()
        self._wandb = WandbRuns(())
        self._mlflow: List[TrackedRun] = []
        self._given: List[bytes] = []
        """Ids that the present command has in its environment, to continue them."""
        self._is_blamed = False
        self._is_first = attempt == 1
        self._is_refused = False
        self._is_over = threading.Event()
        self._on_new = on_new

    def recall(self, beats: Iterable[Optional[bytes]]) -> None:
        """Takes the runs from the newest of the last beats that has any: every attempt reports those of the attempts before it, too."""
        for body in beats:
            try:
                trackers = None if body is None else parse(BEAT, body).get("trackers")
            except DocumentError:
                continue
            if trackers is not None:
                known = [run_of(each) for each in trackers]
                self._wandb = WandbRuns(run for run in known if run.kind == WANDB)
                self._mlflow = [run for run in known if run.kind == MLFLOW]
                self._is_first = False
                return

    def begin(self, own: Mapping[str, str], place: Place) -> Dict[str, str]:
        """Returns the variables that the command gets in addition to its own. Never fails."""
        self._is_over = threading.Event()
        added = tagged_context(own, self._job, self._attempt)
        server = self._server(own, place.work)
        is_certain = server is not None and not self._is_first and self._look_up(server)
        self._is_first = False
        with self._lock:
            self._wandb.begin(folder_of_runs(place.work, own), place.may_read)
            if not self._is_refused:
                added.update(self._wandb.environment(own))
                added.update(self._continued(own) if is_certain else {})
        given = [added[name] for name in ("WANDB_RUN_ID", "MLFLOW_RUN_ID") if name in added]
        for run_id in given:
            self._remark("the command continues the tracked run %s" % run_id)
        self._given, self._is_blamed = [run_id.encode("utf-8") for run_id in given], False
        if server is not None:
            self._watch(server, self._is_over)
        return added

    def end(self) -> None:
        self._is_over.set()

    def see(self, lines: Iterable[bytes]) -> None:
        """Looks for runs in the command's output, and for errors about the one that it continues."""
        lines = list(lines)
        for run_id in self._given if not self._is_blamed else ():
            about = [line for line in lines if run_id in line]
            self._is_blamed = any(b"rror" in line or b"xception" in line for line in about) or self._is_blamed
        with self._lock:
            is_new = self._wandb.see(lines)
        if is_new:
            self._on_new()

    def refuses(self) -> bool:
        """Whether a failed command has said that it cannot continue its run. If so, it may run again, and then starts a new run."""
        self._is_refused = self._is_refused or self._is_blamed
        return self._is_blamed

    def facts(self) -> dict:
        """Returns the fields of beats and results: all runs of the job, as far as they are known; nothing without any."""
        with self._lock:
            self._wandb.look()
            runs = self._mlflow[-RUNS_MAX:] + self._wandb.document()
        return {"trackers": [run.document() for run in runs]} if runs else {}

    def _continued(self, own: Mapping[str, str]) -> Dict[str, str]:
        if len(self._mlflow) != 1 or own.get("MLFLOW_RUN_ID"):
            return {}
        return {"MLFLOW_RUN_ID": self._mlflow[0].run_id}

    def _server(self, own: Mapping[str, str], work: str) -> Optional[Server]:
        try:
            return server_of(own, work)
        except NoAnswer as error:
            self._remark("the MLflow run of this job will not be continued on another machine: %s" % error)
            return None

    def _look_up(self, server: Server) -> bool:
        """Returns whether the server has answered. A run that it has not shown may be deleted, or there may be others by now."""
        until_ms = self._clock.mono_ms() + _LOOKUP_MS
        answers: List[List[TrackedRun]] = []
        troubles: List[NoAnswer] = []

        def ask() -> None:
            try:
                answers.append(runs_of(server, self._job))
            except NoAnswer as error:
                troubles.append(error)

        bounded(ask, lambda: self._clock.mono_ms() > until_ms)
        if not answers:
            why = troubles[0] if troubles else "it did not answer in time"
            self._remark("the MLflow server was asked for the run of this job, but %s: the command starts a new run" % why)
            return False
        with self._lock:
            self._mlflow = answers[0]
        return True

    def _watch(self, server: Server, is_over: threading.Event) -> None:
        """Looks for new runs on the server, less and less often, only to report them."""

        def watch() -> None:
            pause = _FIRST_LOOK_SECONDS
            while not is_over.wait(pause):
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                try:
                    found = runs_of(server, self._job)
                except NoAnswer:
                    continue  # the next attempt says so, if it matters then
                with self._lock:
                    is_new, self._mlflow = found != self._mlflow, found
                if is_new:
                    self._on_new()

        threading.Thread(target=watch, name="tracking", daemon=True).start()

