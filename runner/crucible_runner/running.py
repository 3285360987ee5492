"""The stages in which the user's commands run."""

import contextlib
import os
import signal
from typing import Dict, List, Optional

from .attempt import Attempt
from .checkpoint.last_save import LastSave
from .checkpoint.restore import StoredCheckpoints
from .control.stop import Drain
from .documents import dump
from .endings import DRAIN_WORDS, Ending, Failed, stopped_early
from .image.pulling import PATIENCE_MS, Login, Puller, Wanted
from .paths import write_whole
from .process import container
from .process.causes import tells_of_full_disk
from .process.environment import Facts, container_environment, workload_environment
from .process.own_python import make_own_python
from .process.shell import shell_words, with_wait
from .process.symptoms import is_full, oom_kills
from .process.user import give, hint_of, why_unreachable
from .process.verdict import End, engine_failure, failure_words, hidden_failure, judge
from .process.workload import Machine, Sink, Workload
from .store.retry import Pauses
from .tracking import Place

_SCAN_SECONDS = 0.1
# A process that survives SIGKILL hangs in the kernel; the attempt ends without it.
_KILL_PATIENCE_MS = 15_000
_ENDED_BY_REQUEST = (-signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT)
# Maximum distance between the arrivals of the signals of one request.
_SHUT_DOWN_MS = 1_000
# A child process may handle the request to stop even if the program itself does not.
_REQUEST_MS = 500
# A program that fails for lack of disk space may free space as it ends.
_FULL_MEMORY_MS = 5_000


class Running:
    """Runs setup and run, in a container when the order names an image, and stops them when the attempt must stop."""

    def __init__(self, attempt: Attempt, facts: Facts) -> None:
        self._attempt = attempt
        self._context = attempt.context
        self._stop = attempt.stopping.stop
        self._checkpointing = attempt.checkpointing
        self._facts = facts
        self._docker: Optional[str] = None
        self._full_at_ms: Optional[int] = None
        self._asked_at_wall_ms = 0
        self.is_in_good_order: Optional[bool] = None
        """Whether the command had completed its save; set when `run` returns."""
        self.is_command_running = False
        """True for `run`, false for `setup`."""
        self.is_tracker_refused = False
        """Whether the command failed because it could not continue the run of an experiment tracker."""
        self.hidden_failure: Optional[str] = None
        """A warning that the command succeeded although a program of it seems to have failed."""
        self.lasted_ms = 0
        """The duration of the command's last run."""

    def set_up(self) -> None:
        """Raises `Failed` or `Stopped` when the attempt ends here."""
        attempt, context, order = self._attempt, self._context, self._attempt.order
        if order["image"] is None:
            self._make_own_python()
        self._give_directories()
        if order["image"] is not None:
            self._docker = container.find_docker()
            context.duties.remember_container(container.container_name(context.options.machine))
            attempt.enter("pulling")
            wanted = Wanted(order["image"], self._login())
            folder, is_stopped = context.paths.login, attempt.stopping.is_stopped
            puller = Puller(self._docker, folder, context.clock, context.remark, is_stopped)
            puller.pull(wanted, os.environ, order.get("registryMs", PATIENCE_MS))
        elif order["setup"] is not None:
            attempt.enter("setup")
            end = self._tend(self._start(order["setup"]))
            if end.was_asked_to_stop or end.was_killed:
                drain = self._stop.poll()
                raise stopped_early(drain.reason if drain is not None else "interrupted")
            if end.status != 0:
                raise Failed("disk-full" if end.is_disk_full else "setup", failure_words("setup", end))

    def _make_own_python(self) -> None:
        whynot = make_own_python(self._context.paths.python, os.environ)
        if whynot is not None:
            self._context.remark("the job gets no Python environment of its own, so `pip install` may be refused: %s" % whynot)

    def _give_directories(self) -> None:
        """Before the job's first command: the job's user becomes the owner of fetched and restored files."""
        context, user = self._context, self._context.options.user
        if user is not None:
            context.remark("the commands of this job run as a separate user (uid %d)" % user)
            for path in context.paths.for_user:
                give(path, user)

    def _login(self) -> Optional[Login]:
        login = self._attempt.order.get("imageLogin")
        return login and Login(login["username"], self._facts.image_password)

    def run(self, found: StoredCheckpoints) -> Ending:
        """Runs the command to its end."""
        attempt, context = self._attempt, self._context
        place = Place(context.paths.work, self._checkpointing.walls().holds)
        tracking = attempt.tracking.begin(dict(attempt.order["env"], **self._facts.secrets), place)
        self._facts = self._facts._replace(tracking=tracking, resume_from=self._resume_from(found))
        began_ms = context.clock.mono_ms()
        if self._docker is None:
            attempt.enter("running")
            workload = self._start(attempt.order["run"], found)
        else:
            workload = self._start_container(self._docker, found)
        end = self._tend(workload)
        attempt.tracking.end()
        self.lasted_ms = context.clock.mono_ms() - began_ms
        self._checkpointing.end_warnings()
        if self._docker is not None and end.status != 0 and not (end.was_asked_to_stop or end.was_killed or os.path.exists(self._mark("began"))):
            failed = engine_failure(end, attempt.order["image"])
            if failed is not None:
                raise failed
        if self._docker is not None and os.path.exists(self._mark("setup-failed")):
            raise Failed("disk-full" if end.is_disk_full else "setup", failure_words("setup", end))
        self.is_in_good_order = end.is_in_good_order and not self._is_end_doubtful(end)
        self.hidden_failure = hidden_failure(end)
        drain = self._stop.poll()
        self.is_tracker_refused = self._is_tracker_refused(end)
        return judge(end, drain.reason if drain is not None else None, context.progress.is_done())

    def _resume_from(self, found: StoredCheckpoints) -> str:
        if found.restored is None:
            return ""
        return os.path.normpath(os.path.join(self._checkpointing.directory, found.restored.resume_path))

    def _start(self, text: str, found: Optional[StoredCheckpoints] = None) -> Workload:
        environment = workload_environment(self._facts, os.environ)
        user, wanted = self._context.options.user, self._attempt.order.get("shell")
        whynot = None if user is None else why_unreachable(text, user)
        if whynot is not None:
            raise Failed("setup", whynot)
        command = shell_words(wanted, environment["PATH"])
        command.append(text if found is None else with_wait(text, wanted))
        return self._launch(self._workload(waits=found is not None), command, environment, found)

    def _start_container(self, docker: str, found: StoredCheckpoints) -> Workload:
        attempt, order, paths = self._attempt, self._attempt.order, self._context.paths
        attempt.enter("setup" if order["setup"] is not None else "running")
        inside = container.carried(container_environment(self._facts, os.environ))
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        gpus = container.gpus_for_docker(bool(attempt.gpus.ask()), visible)
        command = container.container_command(docker, order, paths, inside, gpus)
        container.remove_container(container.container_name(self._context.options.machine), docker)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._mark("began"))
        return self._launch(self._workload(), command, dict(os.environ, **inside.variables), found)

    def _workload(self, waits: bool = False) -> Workload:
        context, post = self._context, self._context.post
        machine = Machine(context.options.machine, post.guard, post.timekeeper, post.lock, post.group, waits=waits)
        if self._docker is None:
            machine = machine._replace(user=context.options.user)
        return Workload(machine, Sink(context.book, context.progress, self._attempt.tracking.see), self._docker)

    def _launch(
        self, workload: Workload, command: List[str], environment: Dict[str, str], found: Optional[StoredCheckpoints]
    ) -> Workload:
        self.is_command_running = found is not None
        if found is not None:
            self._checkpointing.begin(found, workload.processes)
            self._context.progress.begin(found.restored.checkpoint.step if found.restored is not None else 0)
        self._kills_before = oom_kills()
        workload.start(command, environment, self._context.paths.work)
        return workload

    def _tend(self, workload: Workload) -> End:
        """Waits for the end of a command; stops it when the attempt must stop."""
        context = self._context
        killed_at_ms: Optional[int] = None
        waiting: Optional[LastSave] = None
        while not workload.ended.wait(_SCAN_SECONDS):
            self._note_full_disk()
            self._note_setup_done()
            self._note_first_step()
            drain = self._stop.poll()
            if drain is None:
                continue
            now_ms = context.clock.mono_ms()
            if killed_at_ms is not None:
                if now_ms - killed_at_ms > _KILL_PATIENCE_MS:
                    context.remark("the command cannot be killed; the attempt ends without it")
                    break
            elif now_ms >= drain.kill_at_ms(self._checkpointing.upload_ms()):
                killed_at_ms = now_ms
                self._note_drain(drain)
                context.remark("killing the command: the time to stop has passed")
                workload.kill()
            elif not workload.is_asked_to_stop:
                self._note_drain(drain)
                if waiting is None:
                    waiting = self._last_save(workload, drain)
                if waiting.is_over():
                    self._asked_at_wall_ms = context.clock.wall_ms()
                    workload.ask_to_stop()
        self._note_full_disk()
        was_full = (
            self._full_at_ms is not None and context.clock.mono_ms() - self._full_at_ms <= _FULL_MEMORY_MS
        )
        kills = oom_kills()
        self._note_rights(workload)
        return End(
            workload.status,
            workload.is_asked_to_stop or self._is_shut_down(workload.status),
            workload.is_killed,
            list(workload.error_lines),
            list(workload.lines),
            was_full or tells_of_full_disk(list(workload.lines)),
            any(after > before for before, after in zip(self._kills_before, kills)),
        )

    def _note_rights(self, workload: Workload) -> None:
        user = self._context.options.user
        if user is not None and self._docker is None and workload.status != 0:
            hint = hint_of(list(workload.error_lines), user)
            if hint is not None:
                self._context.remark(hint)

    def _last_save(self, workload: Workload, drain: Drain) -> LastSave:
        """Decides whether the command may save once more before it is asked to end."""
        context = self._context
        asks_with = self._attempt.order["checkpoint"].get("signal", "SIGTERM")
        try:
            # Without it, a command would be ended at once that has just written its first save.
            self._checkpointing.scanner.scan()
        except OSError as error:
            context.remark("the checkpoint directory cannot be read: %s" % error)
        waiting = LastSave(self._checkpointing.uploads, self._checkpointing.scanner, drain, context.clock)
        until_ms = drain.kill_at_ms(self._checkpointing.upload_ms()) - _REQUEST_MS
        if self.is_command_running and asks_with != "SIGTERM":
            context.remark("asking the command to save with %s" % asks_with)
            workload.ask_to_save(getattr(signal, asks_with))
            waiting.wait_until(until_ms)
        elif self.is_command_running and not workload.handles_request_to_stop():
            due_ms = waiting.due_ms()
            if due_ms is not None and due_ms <= until_ms:
                context.remark("the command does not handle SIGTERM, and its next save is due in time: waiting for that")
                waiting.wait_until(until_ms)
        return waiting

    def _is_shut_down(self, status: int) -> bool:
        """Whether the command got the same request to stop as the runner: a system shutdown sends SIGTERM to all processes."""
        if status in _ENDED_BY_REQUEST:
            pauses = Pauses()
            until_ms = self._context.clock.mono_ms() + _SHUT_DOWN_MS
            while not self._context.signals.is_received and self._context.clock.mono_ms() < until_ms:
                pauses.wait(lambda: self._context.signals.is_received)
        return self._context.signals.is_received

    def _note_full_disk(self) -> None:
        if is_full(self._context.paths.work):
            self._full_at_ms = self._context.clock.mono_ms()

    def _note_drain(self, drain: Drain) -> None:
        context = self._context
        if context.phases.now == "draining":
            return
        window_ms = max(0, drain.window_end_ms - context.clock.mono_ms())
        self._attempt.enter("draining")
        context.remark(
            "stopping, because %s; %.1f s are left" % (DRAIN_WORDS[drain.reason], window_ms / 1000)
        )
        try:
            write_whole(context.paths.stop, dump({"reason": drain.reason, "windowMs": window_ms}))
        except OSError as error:
            context.remark("stop.json cannot be written for the command: %s" % error)

    def _note_setup_done(self) -> None:
        if self._docker is not None and self._context.phases.now == "setup":
            if os.path.exists(self._mark("setup-done")):
                self._attempt.enter("running")

    def _note_first_step(self) -> None:
        """The helper's file is polled without delay until it reports the first step, which other components wait for."""
        progress = self._context.progress
        if self._context.phases.now == "running" and progress.first_step_at_ms is None:
            progress.step()
            if progress.first_step_at_ms is not None:
                self._checkpointing.restores.end("went-on")
                self._attempt.timekeeping.send_soon()

    def _is_tracker_refused(self, end: End) -> bool:
        if end.status == 0 or end.was_asked_to_stop or self._context.progress.first_step_at_ms is not None:
            return False
        return self._attempt.tracking.refuses()

    def _mark(self, name: str) -> str:
        return os.path.join(self._context.paths.control, name)

    def _is_end_doubtful(self, end: End) -> bool:
        """In a container 143 may also mean that SIGTERM killed the command during a save; writes since then show that it did not."""
        if self._docker is None or end.status != 143:
            return False
        return not self._checkpointing.scanner.is_written_since(self._asked_at_wall_ms)
