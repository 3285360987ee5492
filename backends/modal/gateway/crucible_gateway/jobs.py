"""Jobs by key: accepted once, however often a request is repeated, and described from the registry's facts and from what Modal reports."""

import asyncio
import hashlib
from typing import Optional

from .documents import Job, JobError, JobRequest, Listed
from .launcher import CANCEL, CERTAIN, MESSAGE_MAX, OWN_TAGS, record_failure, tags_of
from .runtime import Runtime, RuntimeFailure


# Limit on the start of a launcher, twice the longest life of a web request: one that died before will start none.
SPAWNED_WITHIN_MS = 2 * 60 * 1000


class KeyReused(Exception):
    """The key belongs to a different request."""


class TooLate(Exception):
    """The request arrived after `send_by_ms`."""


def is_spend_limit(failure: RuntimeFailure) -> bool:
    """Whether the workspace may spend no more, which only its owner changes (`workspace billing cycle spend limit reached`)."""
    return "spend limit" in failure.message or "billing" in failure.message


def digest_of(request: JobRequest) -> str:
    """Identifies a request without what is new in each send."""
    text = request.model_dump_json(exclude={"command", "env", "send_by_ms"})
    return hashlib.sha256(text.encode()).hexdigest()


def _fill_from_tags(job: Job, tags: dict[str, str]) -> None:
    """What `launcher.tags_of` wrote, for a job whose own entry has expired."""
    accepted = tags.get("accepted-at-ms")
    job.owner, job.accepted_at_ms = tags.get("owner"), int(accepted) if accepted is not None else None
    job.tags = {name: value for name, value in tags.items() if name not in OWN_TAGS}


class Jobs:
    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        self._facts = runtime.facts

    async def submit(self, key: str, request: JobRequest) -> tuple[Job, bool]:
        """Returns the job, and whether this request made it. Raises `KeyReused` and `TooLate`."""
        known = await self._facts.get(key + "/spec")
        now_ms = self._runtime.now_ms()
        if known is None and now_ms > request.send_by_ms:
            raise TooLate()
        spec = {"sha256": digest_of(request), "owner": request.owner, "tags": request.tags, "accepted_at_ms": now_ms}
        is_new = known is None and await self._facts.put_once(key + "/spec", spec)
        known = await self._facts.get(key + "/spec")
        if isinstance(known, dict) and known["sha256"] != spec["sha256"]:
            raise KeyReused()
        # A gateway that died before this line left a spec without a call; a repeated request continues there. Of two calls the second finds
        # the claim of the first.
        begun = await asyncio.gather(*(self._facts.get("%s/%s" % (key, name)) for name in ("call", "claim", "error")))
        if all(fact is None for fact in begun):
            for name in request.volumes.values():
                await self._facts.replace("volume/" + name, now_ms)
            await self._facts.add_pending(key, tags_of(key, request, now_ms))
            await self._spawn(key, request)
        return await self.read(key) or Job(key=key, phase="launching"), is_new

    async def _spawn(self, key: str, request: JobRequest) -> None:
        """Starts the launcher, or puts on record that Modal refuses it. Raises `RuntimeFailure` if a repeated request may succeed."""
        try:
            call_id = await self._runtime.spawn_launch(key, request)
        except RuntimeFailure as failure:
            is_busy = failure.type == "ResourceExhaustedError" and not is_spend_limit(failure)
            if failure.type not in (*CERTAIN, "ConflictError") or is_busy:
                raise
            await record_failure(self._runtime, key, failure)
            await self._facts.remove_pending(key)
            return
        await self._facts.put_once(key + "/call", call_id)

    async def read(self, key: str) -> Optional[Job]:
        """None for a key that neither the registry nor Modal knows."""
        names = ("spec", "sandbox", "error", "cancel", "claim", "end")
        spec, sandbox, error, cancel, claim, end = await asyncio.gather(*(self._facts.get("%s/%s" % (key, name)) for name in names))
        if sandbox is None:
            sandbox = await self._found(key, has_spec=isinstance(spec, dict), is_settled=error is not None or claim == CANCEL)
        if sandbox is None and not isinstance(spec, dict) and cancel is None:
            return None
        job = Job(key=key, phase="launching")
        if isinstance(spec, dict):
            job.owner, job.tags, job.accepted_at_ms = spec["owner"], spec["tags"], spec["accepted_at_ms"]
        elif isinstance(sandbox, dict) and "tags" in sandbox:
            _fill_from_tags(job, sandbox["tags"])
        if isinstance(sandbox, dict):
            await self._fill_running(job, sandbox, end)
        elif claim == CANCEL:
            job.phase, job.ended_at_ms = "cancelled", cancel if isinstance(cancel, int) else None
        elif isinstance(error, dict):
            job.phase, job.ended_at_ms = "launch_failed", error["at_ms"]
            job.error = JobError(type=error["type"], message=error["message"])
        elif await self._is_launch_over(key):
            job = await self._after_launch(job)
        if job.phase in ("ended", "launch_failed", "launch_lost") and cancel is not None:
            job.phase = "cancelled"
        return job

    async def _found(self, key: str, has_spec: bool, is_settled: bool) -> Optional[dict]:
        """A Sandbox of a key that the registry does not name: its launcher died in between, or the entry has expired."""
        if is_settled or (has_spec and not await self._is_launch_over(key)):
            return None
        for found in await self._runtime.find({"key": key}):
            fact = {"id": found.sandbox_id, "at_ms": self._runtime.now_ms(), "tags": found.tags}
            await self._facts.put_once(key + "/sandbox", fact)
            known = await self._facts.get(key + "/sandbox")
            return known if isinstance(known, dict) else fact
        return None

    async def _fill_running(self, job: Job, sandbox: dict, end: object) -> None:
        job.sandbox_id, job.running_at_ms = sandbox["id"], sandbox["at_ms"]
        if not isinstance(end, dict):
            try:
                code = await self._runtime.exit_code(sandbox["id"])
            except RuntimeFailure as failure:
                if failure.type != "NotFoundError":
                    raise
                code = -1
            if code is None:
                job.phase = "running"
                return
            await self._facts.put_once(job.key + "/end", {"code": code, "at_ms": self._runtime.now_ms()})
            end = await self._facts.get(job.key + "/end")
        job.phase = "ended"
        if isinstance(end, dict):
            job.exit_code, job.ended_at_ms = (None if end["code"] == -1 else end["code"]), end["at_ms"]

    async def _is_launch_over(self, key: str) -> bool:
        call_id = await self._facts.get(key + "/call")
        if call_id is None:
            spec, claim = await asyncio.gather(self._facts.get(key + "/spec"), self._facts.get(key + "/claim"))
            is_old = isinstance(spec, dict) and self._runtime.now_ms() - spec["accepted_at_ms"] > SPAWNED_WITHIN_MS
            return is_old and claim is None
        return isinstance(call_id, str) and await self._runtime.launch_state(call_id) == "over"

    async def _after_launch(self, job: Job) -> Job:
        """The launcher is over, and neither Sandbox nor error was recorded when we looked: it may have recorded one since."""
        sandbox, error = await asyncio.gather(self._facts.get(job.key + "/sandbox"), self._facts.get(job.key + "/error"))
        if isinstance(sandbox, dict):
            await self._fill_running(job, sandbox, await self._facts.get(job.key + "/end"))
        elif isinstance(error, dict):
            job.phase, job.ended_at_ms = "launch_failed", error["at_ms"]
            job.error = JobError(type=error["type"], message=error["message"])
        else:
            job.phase = "launch_lost"
        return job

    async def cancel(self, key: str) -> Job:
        """After it, no Sandbox of this key starts, and those that exist are being ended. Also for a key that is not known yet."""
        await self._facts.put_once(key + "/cancel", self._runtime.now_ms())
        # The holder of the claim decides: if the cancellation holds it, the launcher never creates a Sandbox.
        await self._facts.put_once(key + "/claim", CANCEL)
        sandbox = await self._facts.get(key + "/sandbox")
        found = {found.sandbox_id for found in await self._runtime.find({"key": key})}
        if isinstance(sandbox, dict):
            found.add(sandbox["id"])
        await asyncio.gather(*(self._end(sandbox_id) for sandbox_id in found))
        return await self.read(key) or Job(key=key, phase="cancelled")

    async def _end(self, sandbox_id: str) -> None:
        try:
            await self._runtime.terminate(sandbox_id)
        except RuntimeFailure as failure:
            if failure.type != "NotFoundError":
                raise

    async def running(self, owner: str) -> list[Listed]:
        """Asks Modal, which also knows what the registry has forgotten, and adds the launches that Modal does not know yet."""
        pending = await self._facts.pending()
        found = await self._runtime.find({"owner": owner})
        listed = {each.tags["key"]: Listed(key=each.tags["key"], sandbox_id=each.sandbox_id, tags=each.tags) for each in found if "key" in each.tags}
        for key, tags in pending.items():
            if tags.get("owner") != owner or key in listed:
                continue
            job = await self.read(key)
            if job is not None and job.phase in ("launching", "running"):
                listed[key] = Listed(key=key, sandbox_id=job.sandbox_id, tags=tags)
        return list(listed.values())

    async def logs(self, key: str, lines: int) -> Optional[list[str]]:
        job = await self.read(key)
        if job is None:
            return None
        if job.sandbox_id is not None:
            return await self._runtime.logs(job.sandbox_id, lines)
        return [] if job.error is None else [("%s: %s" % (job.error.type, job.error.message))[:MESSAGE_MAX]]
