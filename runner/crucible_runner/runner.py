"""The life of an attempt, from its order to its result."""

import os
import sys
import time
import traceback
from typing import Optional

from .artifacts import GIB_MAX, Keeper, find_artifacts, half_of
from .attempt import Attempt, install_helper
from .clock import Clock, in_words
from .control.claim import ClaimedElsewhere
from .documents import ORDER, dump, parse
from .endings import Ending, Failed, Stopped, is_disk_full, stopped_early
from .deadman import arm, do_last_duties
from .inputs.bundle import Fetcher
from .inputs.fetching import Inputs
from .inputs.input_cache import InputCache, default_folder
from .logs.redact import Redactor
from .process import processes
from .process.environment import Facts
from .process.guard import Options, Post
from .resuming import Resuming
from .running import Running
from .seals import read_key, unseal
from .shapes import DocumentError
from .store.bounded import bounded
from .store.retry import GaveUp, persist
from .store.transfer import IsOver

# A machine that cannot reach the store, or has no order there, must not keep running for nothing.
_ORDER_PATIENCE_MS = 60 * 60_000
_ABSENT_PATIENCE_MS = 15_000
_ABSENT_SCAN_SECONDS = 0.2
_REFUSAL_PATIENCE_MS = 60_000
# No attempt follows after these reasons, so all remaining time may go to the artifacts.
_FINAL_REASONS = ("cancelled", "deadline", "budget")


def run(options: Options, post: Post) -> int:
    """Runs the attempt to its end. Returns the exit code, which the control plane ignores."""
    try:
        attempt = Attempt(options, post, Clock())
    except (ValueError, OSError) as error:
        print("the runner cannot start: %s" % error, file=sys.stderr)
        return 2
    attempt.listen_to_signals()
    try:
        return Life(attempt).live()
    finally:
        do_last_duties(attempt)


class Life:
    """The stages in their order."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._until_ms = attempt.clock.mono_ms() + _ORDER_PATIENCE_MS
        self._end_of_workload: Optional[bool] = None
        """Whether the workload ended in good order; None before its end."""
        self._artifacts: list = []

    def live(self) -> int:
        attempt = self._attempt
        arm(attempt, self._until_ms)
        if not attempt.memory.is_first_start:
            processes.end_all(attempt.options.attempt_id, [], [attempt.post.guard])
        try:
            body = self._read_order()
            if self._has_result():
                print("nothing is to be done here: the attempt has a result", file=sys.stderr)
                return 0
            attempt.claim(self._is_starting_over)
            attempt.begin(parse(ORDER, body))
        except ClaimedElsewhere as error:
            print("nothing is to be done here: %s" % error, file=sys.stderr)
            return 0
        except DocumentError as error:
            return self._refuse(Ending("failed", "runner", "The order cannot be understood: %s." % error))
        except GaveUp as error:
            print("the attempt cannot begin: %s" % error, file=sys.stderr)
            return 1
        except OSError as error:
            return self._refuse(failure_of_runner(error))
        ending = self._ending()
        self._finish(ending)
        return 0

    def _read_order(self) -> bytes:
        """Raises `GaveUp` when the order is absent or unreachable."""
        attempt, trouble = self._attempt, self._attempt.trouble("reading the order")
        absent_until_ms = attempt.clock.mono_ms() + _ABSENT_PATIENCE_MS
        while True:
            body = persist(lambda: attempt.store.get(attempt.keys.order), self._is_starting_over, trouble)
            if body is not None:
                return body
            if self._is_starting_over() or attempt.clock.mono_ms() > absent_until_ms:
                raise GaveUp("the store has nothing at %s" % attempt.keys.order)
            time.sleep(_ABSENT_SCAN_SECONDS)

    def _has_result(self) -> bool:
        attempt, trouble = self._attempt, self._attempt.trouble("looking for a result")
        return (
            persist(lambda: attempt.store.get(attempt.keys.result), self._is_starting_over, trouble)
            is not None
        )

    def _is_starting_over(self) -> bool:
        """Without an order there is neither a lease nor a limit; this is the limit."""
        return self._attempt.is_signalled or self._attempt.clock.mono_ms() > self._until_ms

    def _ending(self) -> Ending:
        """Runs the stages; every outcome becomes an ending."""
        attempt = self._attempt
        try:
            return self._stages()
        except (Failed, Stopped) as end:
            return end.ending()
        except GaveUp:
            drain = attempt.stop.poll()
            if drain is None:
                return Ending("stopped", "late", "The store did not answer until it was too late to start.")
            return stopped_early(drain.reason).ending()
        except Exception as error:
            return failure_of_runner(error)

    def _stages(self) -> Ending:
        attempt, order = self._attempt, self._attempt.order
        if attempt.is_late:
            waited_ms = attempt.clock.wall_ms() - order["issuedAtMs"]
            allowed = (in_words(waited_ms), in_words(order["startWithinMs"] + order.get("queueMs", 0)))
            raise Stopped("late", "The machine started %s after its order; %s were allowed." % allowed)
        # First of all: a command that must be stopped must not be started.
        persist(attempt.watch.poll, attempt.is_hopeless, attempt.trouble("reading drain.json"))
        attempt.watch.start(order["beatMs"], attempt.clock)
        self._check()
        facts = self._fetch()
        resuming = Resuming(attempt, facts)
        found = resuming.restore()
        self._check()
        running = Running(attempt, facts)
        running.set_up()
        self._check()
        ending = running.run(found)
        while running.is_tracker_refused or resuming.steps_back(ending, running.lasted_ms):
            if running.is_tracker_refused:
                attempt.remark("the command cannot continue the run of its tracker: running it again with a new run")
                attempt.checkpoints.give_up()
            found = resuming.restore()
            if not resuming.may_run(found):
                break
            self._check()
            ending = running.run(found)
        self._end_of_workload = running.is_in_good_order
        return ending

    def _check(self) -> None:
        drain = self._attempt.stop.poll()
        if drain is not None:
            raise stopped_early(drain.reason)

    def _fetch(self) -> Facts:
        attempt, order, paths = self._attempt, self._attempt.order, self._attempt.paths
        attempt.enter("fetching")
        install_helper(paths)
        if order["bundle"] is not None:
            archive = os.path.join(paths.root, "tmp", "bundle.tar.gz")
            fetcher = Fetcher(attempt.store, attempt.keys, attempt.clock, attempt.remark)
            fetcher.fetch(order["bundle"], paths.work, archive, attempt.patience)
        # Secrets come before the inputs, because they may contain the inputs' credentials.
        values = self._read_secrets()
        secrets = {name: values[name] for name in order["secrets"]}
        cache = InputCache(default_folder(os.environ))
        inputs = Inputs(cache, attempt.clock, attempt.remark, attempt.patience)
        inputs.use_credentials(dict(order["env"], **secrets), os.environ.get("HOME"))
        for each in order["inputs"]:
            self._check()
            inputs.fetch(each["source"], os.path.join(paths.work, each["path"]))
        facts = Facts(order, secrets, paths, attempt.directory)
        facts.has_user = attempt.options.user is not None
        if "imageLogin" in order:
            facts.image_password = values[order["imageLogin"]["secret"]]
        return facts

    def _read_secrets(self) -> dict:
        """Reads the workload's secrets, and the password of the image's registry."""
        attempt, order = self._attempt, self._attempt.order
        names = order["secrets"] + ([order["imageLogin"]["secret"]] if "imageLogin" in order else [])
        if not names:
            return {}
        trouble = attempt.trouble("reading the secrets")
        key_file = attempt.options.secret_key_file
        if key_file is None:
            raise Failed("secrets", "The order names secrets, but the machine was given no key for them.")
        body = persist(lambda: attempt.store.get(attempt.keys.secrets), attempt.is_hopeless, trouble)
        if body is None:
            raise Failed(
                "secrets", "The secrets are not in the store: they are read once, and were read before."
            )
        try:
            values = unseal(body, read_key(key_file))
        except (ValueError, OSError) as error:
            raise Failed("secrets", "The secrets cannot be opened: %s." % error) from error
        attempt.book.redactor = Redactor(values.values())
        persist(lambda: attempt.store.delete(attempt.keys.secrets), attempt.is_hopeless, trouble)
        missing = [name for name in names if name not in values]
        if missing:
            raise Failed("secrets", "These secrets have no value: %s." % ", ".join(missing))
        return {name: values[name] for name in names}

    def _left_ms(self) -> Optional[int]:
        """Returns the time left for uploads; None without a limit."""
        drain = self._attempt.stop.poll()
        return None if drain is None else drain.window_end_ms - self._attempt.clock.mono_ms()

    def _is_over(self, share: float) -> IsOver:
        """Returns a check for the end of the final phase: `share` of the time reserved after a window."""
        extra_ms = self._attempt.order["powerOffMs"] * share

        def is_over() -> bool:
            left_ms = self._left_ms()
            return left_ms is not None and left_ms + extra_ms <= 0

        return is_over

    def _finish(self, ending: Ending) -> None:
        attempt = self._attempt
        attempt.enter("finishing")
        if self._end_of_workload is not None:
            attempt.checkpoints.finish(self._end_of_workload, self._left_ms)
            is_last = ending.outcome != "stopped" or ending.reason in _FINAL_REASONS
            self._keep_artifacts(self._is_over(0) if is_last else half_of(self._left_ms))
        attempt.remark("%s (%s): %s" % (ending.outcome, ending.reason, ending.message))
        attempt.shipper.finish(self._is_over(0.5))
        self._put_result(ending, self._is_over(1))

    def _keep_artifacts(self, is_over: IsOver) -> None:
        attempt, paths = self._attempt, self._attempt.paths
        order = attempt.order
        walls, gib_max = attempt.walls(), order.get("artifactGiBMax", GIB_MAX)
        keeper = Keeper(attempt.store, attempt.keys, attempt.clock, attempt.remark, walls, gib_max)
        attempt.keeper = keeper
        try:
            found, remarks = find_artifacts(paths.output, paths.work, attempt.order["outputs"], keeper.walls)
            for remark in remarks:
                attempt.remark(remark)
            bounded(lambda: keeper.keep(found, is_over), is_over)
            if len(keeper.kept) < len(found):
                attempt.remark("%d of %d artifacts are kept" % (len(keeper.kept), len(found)))
        except Exception as error:  # folders nested too deeply, or any other error: the result must be put
            attempt.remark("artifacts cannot be read: %s" % error)
        self._artifacts = list(keeper.kept)

    def _put_result(self, ending: Ending, is_over: IsOver) -> None:
        attempt = self._attempt
        attempt.beats.end()
        body = dump(result_document(attempt, ending, self._artifacts))
        trouble = attempt.trouble("putting the result")
        put = lambda: attempt.store.put_if_absent(attempt.keys.result, body)  # noqa: E731
        bounded(lambda: persist(put, is_over, trouble), is_over)

    def _refuse(self, ending: Ending) -> int:
        """Ends an attempt that cannot even begin."""
        attempt = self._attempt
        print(ending.message, file=sys.stderr)
        body = dump(result_document(attempt, ending, []))
        until_ms = attempt.clock.mono_ms() + _REFUSAL_PATIENCE_MS
        persist(
            lambda: attempt.store.put_if_absent(attempt.keys.result, body),
            lambda: attempt.clock.mono_ms() > until_ms,
            attempt.trouble("putting the result"),
        )
        return 1


def failure_of_runner(error: Exception) -> Ending:
    if is_disk_full(error):
        return Ending("failed", "disk-full", "The machine's disk is full: %s." % error)
    traceback.print_exc()
    return Ending("failed", "runner", "The runner failed: %s: %s." % (type(error).__name__, error))


def result_document(attempt: Attempt, ending: Ending, artifacts: list) -> dict:
    document = {
        "version": 1,
        "attemptId": attempt.options.attempt_id,
        "outcome": ending.outcome,
        "reason": ending.reason,
        "message": attempt.book.redactor.clean_text(ending.message),
        "exitCode": ending.exit_code,
        "signal": ending.signal,
        "progress": attempt.progress.document(),
        **attempt.checkpoint_facts(),
        "artifacts": artifacts,
        "phases": attempt.phases.document(),
        "logLines": attempt.book.lines,
        "finishedAtMs": attempt.clock.wall_ms(),
    }
    return dict(document, **attempt.times())
