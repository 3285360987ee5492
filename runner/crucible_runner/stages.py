"""The stages of an attempt whose order is known, from fetching to the result."""

import os
import traceback
from typing import List, Optional

from .artifacts import Outline, find_artifacts, half_of, matches_of, missing_of, outline_of
from .attempt import Attempt
from .clock import in_words
from .documents import dump
from .endings import Ending, Failed, Stopped, is_disk_full, stopped_early
from .helpers import install_helpers
from .inputs.bundle import Fetcher
from .inputs.fetching import Inputs
from .inputs.input_cache import InputCache, default_folder
from .last_words import REFUSED_WORDS, leave_last_words
from .paths import write_whole
from .process.environment import Facts
from .process.gpus import count_of
from .report import result_of
from .resuming import Resuming
from .running import Running
from .seals import read_key, unseal
from .signing import SIGNATURE, signature_of, without_key
from .store.bounded import bounded
from .store.retry import GaveUp, Refused, persist
from .store.transfer import IsOver

# A warning names so many of the outputs that are not kept.
_NAMED_MAX = 5
# No attempt follows after these reasons, so all remaining time may go to the artifacts.
_FINAL_REASONS = ("cancelled", "deadline", "budget")


class Stages:
    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._context = attempt.context
        self._stopping = attempt.stopping
        self._end_of_workload: Optional[bool] = None
        """Whether the workload ended in good order; None before its end."""
        self._artifacts: list = []
        self._missing: List[str] = []
        """Patterns of outputs whose files cannot be kept."""
        self._left_out: List[str] = []
        """Remarks about members of outputs that are not kept."""
        self._hidden_failure: Optional[str] = None
        """A warning that the command succeeded although a program of it seems to have failed."""
        self._warning: Optional[dict] = None
        self._refused_at_ms: Optional[int] = None
        """Since when (monotonic) the attempt is over, because the store refuses this machine; nothing more is waited for."""
        self._result_key: Optional[str] = None
        """Signs the return value of a function."""

    def run(self) -> None:
        """Runs the stages and puts the result."""
        self._finish(self._ending())

    def _ending(self) -> Ending:
        """Runs the stages; every outcome becomes an ending."""
        try:
            return self._run_all()
        except (Failed, Stopped) as end:
            return end.ending()
        except Refused as error:
            self._refused_at_ms = self._context.clock.mono_ms()
            return Ending("failed", "store-refused", "%s%s%s." % (REFUSED_WORDS[0].upper(), REFUSED_WORDS[1:], error))
        except GaveUp:
            drain = self._stopping.stop.poll()
            if drain is None:
                return Ending("stopped", "late", "The store did not answer until it was too late to start.")
            return stopped_early(drain.reason).ending()
        except Exception as error:
            return failure_of_runner(error)

    def _run_all(self) -> Ending:
        context, stopping, order = self._context, self._stopping, self._attempt.order
        if stopping.is_late:
            waited_ms = context.clock.wall_ms() - order["issuedAtMs"]
            allowed = (in_words(waited_ms), in_words(order["startWithinMs"] + order.get("queueMs", 0)))
            raise Stopped("late", "The machine started %s after its order; %s were allowed." % allowed)
        # First of all: a command that must be stopped must not be started.
        stopping.stop.wait_for_first_look(stopping.is_hopeless)
        self._check()
        facts = self._fetch()
        resuming = Resuming(self._attempt)
        found = resuming.restore()
        self._check()
        running = Running(self._attempt, facts)
        running.set_up()
        self._check()
        ending = running.run(found)
        while running.is_tracker_refused or resuming.steps_back(ending, running.lasted_ms):
            if running.is_tracker_refused:
                context.remark("the command cannot continue the run of its tracker: running it again with a new run")
                self._attempt.checkpointing.uploads.give_up()
            found = resuming.restore()
            if not resuming.may_run(found):
                break
            self._check()
            ending = running.run(found)
        self._end_of_workload = running.is_in_good_order
        self._hidden_failure = running.hidden_failure
        return ending

    def _check(self) -> None:
        drain = self._stopping.stop.poll()
        if drain is not None:
            raise stopped_early(drain.reason)

    def _fetch(self) -> Facts:
        context, stopping, order = self._context, self._stopping, self._attempt.order
        paths, user = context.paths, context.options.user
        self._attempt.enter("fetching")
        install_helpers(paths.helper)
        if order["bundle"] is not None:
            archive = os.path.join(paths.root, "tmp", "bundle.tar.gz")
            fetcher = Fetcher(context.store, context.keys, context.trouble_at_start("fetching the bundle"))
            fetcher.fetch(order["bundle"], paths.work, archive, stopping.patience)
        # Secrets come before the inputs, because they may contain the inputs' credentials.
        values = self._read_secrets()
        secrets, self._result_key = without_key({name: values[name] for name in order["secrets"]})
        cache = InputCache(default_folder(os.environ))
        inputs = Inputs(cache, context.clock, context.remark, stopping.patience)
        inputs.use_credentials(dict(order["env"], **secrets), os.environ.get("HOME"))
        for each in order["inputs"]:
            self._check()
            inputs.fetch(each["source"], os.path.join(paths.work, each["path"]))
        image_password = values[order["imageLogin"]["secret"]] if "imageLogin" in order else ""
        directory = self._attempt.checkpointing.directory
        gpus = count_of(self._attempt.gpus.ask(), os.environ.get("CUDA_VISIBLE_DEVICES"))
        return Facts(order, secrets, paths, directory, user is not None, image_password, gpus=gpus)

    def _read_secrets(self) -> dict:
        """Reads the workload's secrets, and the password of the image's registry."""
        context, order = self._context, self._attempt.order
        names = order["secrets"] + ([order["imageLogin"]["secret"]] if "imageLogin" in order else [])
        if not names:
            return {}
        trouble = context.trouble_at_start("reading the secrets")
        key_file = context.options.secret_key_file
        if key_file is None:
            raise Failed("secrets", "The order names secrets, but the machine has no key for them.")
        body = persist(lambda: context.store.get(context.keys.secrets), self._stopping.is_hopeless, trouble)
        if body is None:
            raise Failed(
                "secrets", "The secrets are no longer in the store: a machine has already read them."
            )
        try:
            values = unseal(body, read_key(key_file))
        except (ValueError, OSError) as error:
            raise Failed("secrets", "The secrets cannot be opened: %s." % error) from error
        context.book.redact(values.values())
        persist(lambda: context.store.delete(context.keys.secrets), self._stopping.is_hopeless, trouble)
        missing = [name for name in names if name not in values]
        if missing:
            raise Failed("secrets", "Secrets without a value: %s." % ", ".join(missing))
        return {name: values[name] for name in names}

    def _left_ms(self) -> Optional[int]:
        """Returns the time left for uploads; None without a limit."""
        if self._refused_at_ms is not None:
            return self._refused_at_ms - self._context.clock.mono_ms()
        drain = self._stopping.stop.poll()
        return None if drain is None else drain.window_end_ms - self._context.clock.mono_ms()

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
        self._note_program_ended()
        if self._end_of_workload is not None:
            attempt.checkpointing.uploads.finish(self._end_of_workload, self._left_ms)
            attempt.checkpointing.note_left_out()
            is_last = ending.outcome != "stopped" or ending.reason in _FINAL_REASONS
            self._keep_artifacts(self._is_over(0) if is_last else half_of(self._left_ms))
            ending = self._checked_outputs(ending)
        self._context.remark("%s (%s): %s" % (ending.outcome, ending.reason, ending.message))
        attempt.shipper.finish(self._is_over(0.5))
        self._put_result(ending, self._is_over(1))
        if self._refused_at_ms is not None:
            leave_last_words(self._context, ending.message)

    def _checked_outputs(self, ending: Ending) -> Ending:
        """A command that succeeds without all of its outputs has failed if the order requires them; otherwise that is a warning."""
        if ending.outcome != "succeeded":
            return ending
        words = "no file matches %s" % ", ".join(self._missing)
        if self._missing and self._attempt.order.get("requiresOutputs", False):
            return ending._replace(
                outcome="failed", reason="workload", message="%s, but its outputs are missing: %s." % (ending.message[:-1], words)
            )
        found = []
        if self._hidden_failure is not None:
            found.append(("hidden-failure", self._hidden_failure))
        if self._missing:
            text = "Outputs are missing: %s. Correct `outputs`; with `require_outputs: true` this is a failure." % words
            found.append(("missing-outputs", text))
        if self._left_out:
            more = ", and %d more in the log" % (len(self._left_out) - _NAMED_MAX) if len(self._left_out) > _NAMED_MAX else ""
            found.append(("left-out", "Of the outputs, %s%s." % ("; ".join(self._left_out[:_NAMED_MAX]), more)))
        if found:
            text = " ".join(text for _, text in found)
            self._warning = {"kind": found[0][0], "text": text, "sinceMs": self._context.clock.wall_ms()}
        return ending

    def _note_program_ended(self) -> None:
        """Lets another job have the place on a shared host while this one only uploads."""
        try:
            write_whole(self._context.paths.program_ended, b"")
        except OSError as error:
            self._context.remark("the end of the program cannot be noted: %s" % error)

    def _keep_artifacts(self, is_over: IsOver) -> None:
        context, keeper, paths = self._context, self._attempt.keeper, self._context.paths
        try:
            matches = matches_of(paths.work, self._attempt.order["outputs"])
            self._missing = missing_of(matches, keeper.walls)
            found, self._left_out, remarks = find_artifacts(paths.output, paths.work, matches, keeper.walls)
            for remark in [*remarks, *self._left_out]:
                context.remark(remark)
            if self._result_key is not None:
                # The runner writes this file, whatever a program of the job has written under its name.
                found.pop(SIGNATURE, None)
            if found:
                context.remark(keeper.words_of(found))
            outline = outline_of(paths.output, paths.work, matches)
            bounded(lambda: keeper.keep(found, is_over), is_over)
            self._left_out += keeper.left_out
            self._keep_outline(outline, is_over)
            if len(keeper.kept) < len(found):
                context.remark("%d of %d artifacts are kept" % (len(keeper.kept), len(found)))
            if self._result_key is not None:
                self._sign_result(self._result_key, is_over)
        except Exception as error:  # folders nested too deeply, or any other error: the result must be put
            context.remark("artifacts cannot be read: %s" % error)
        self._artifacts = list(keeper.kept)

    def _sign_result(self, key: str, is_over: IsOver) -> None:
        keeper = self._attempt.keeper
        signature = signature_of(key, self._context.options.attempt, keeper.kept)
        if signature is not None:
            bounded(lambda: keeper.keep_text(SIGNATURE, signature, is_over), is_over)

    def _keep_outline(self, outline: Outline, is_over: IsOver) -> None:
        """Keeps what makes a downloaded tree equal to the program's: permissions, times, empty folders and links to folders."""
        context, statuses = self._context, self._attempt.keeper.statuses
        if statuses or outline.folders or outline.links:
            body = dump(outline.document(statuses))
            put = lambda: context.store.put(context.keys.outputs, body)  # noqa: E731
            bounded(lambda: persist(put, is_over, context.trouble("keeping the permissions of artifacts")), is_over)

    def _put_result(self, ending: Ending, is_over: IsOver) -> None:
        attempt = self._attempt
        attempt.timekeeping.end_beats()
        context, body = attempt.context, dump(result_of(attempt, ending, self._artifacts, self._warning))
        trouble = context.trouble("putting the result")
        put = lambda: context.store.put_if_absent(context.keys.result, body)  # noqa: E731
        bounded(lambda: persist(put, is_over, trouble), is_over)


def failure_of_runner(error: Exception) -> Ending:
    if is_disk_full(error):
        return Ending("failed", "disk-full", "The machine's disk is full: %s." % error)
    traceback.print_exc()
    return Ending("failed", "runner", "The runner failed: %s: %s." % (type(error).__name__, error))
