"""Creates the Sandbox of a job. Runs in a spawned Function, because building an image and waiting for a GPU take longer than a web request
may.
"""

from typing import Optional

from .documents import JobRequest
from .runtime import Runtime, RuntimeFailure

LAUNCHER = "launcher"
CANCEL = "cancel"

# Modal limits how fast Sandboxes are created. The wait before each retry, in seconds.
RATE_WAITS_S = (1, 2, 4, 8, 16, 32)
MESSAGE_MAX = 2000

# Tags that `tags_of` adds to those of a request.
OWN_TAGS = ("key", "owner", "accepted-at-ms")

# Failures after which no Sandbox can be running. After any other, and above all after AlreadyExistsError, Modal is asked first. The client
# keeps a Sandbox alive when it raises ConflictError, which also stands for an aborted question about it (`sandbox/_impl_v1.py` of 1.6).
CERTAIN = ("InvalidError", "ResourceExhaustedError", "NotFoundError", "AuthError", "PermissionDeniedError", "RemoteError", "ImageBuildError")


def tags_of(key: str, request: JobRequest, accepted_at_ms: int) -> dict[str, str]:
    return {**request.tags, "key": key, "owner": request.owner, "accepted-at-ms": str(accepted_at_ms)}


async def launch(runtime: Runtime, key: str, request: JobRequest) -> str:
    """Returns what happened, for the logs. Modal may run it again after it took its container back: then it never creates a second
    Sandbox, but adopts the first one if it finds it.
    """
    happened = await _launch(runtime, key, request)
    await runtime.facts.remove_pending(key)
    return happened


async def _launch(runtime: Runtime, key: str, request: JobRequest) -> str:
    facts = runtime.facts
    if not await facts.put_once(key + "/claim", LAUNCHER):
        if await facts.get(key + "/claim") == CANCEL:
            return "cancelled"
        return await _adopt(runtime, key) or "nothing to adopt"
    spec = await facts.get(key + "/spec")
    accepted_at_ms = spec["accepted_at_ms"] if isinstance(spec, dict) else runtime.now_ms()
    try:
        sandbox_id = await _create(runtime, key, request, tags_of(key, request, accepted_at_ms))
    except RuntimeFailure as failure:
        if failure.type not in CERTAIN:
            adopted = await _adopt(runtime, key)
            if adopted is not None:
                return adopted
        await record_failure(runtime, key, failure)
        return "failed: " + failure.type
    await _record(runtime, key, sandbox_id)
    return sandbox_id


async def record_failure(runtime: Runtime, key: str, failure: RuntimeFailure) -> None:
    error = {"type": failure.type, "message": failure.message[:MESSAGE_MAX], "at_ms": runtime.now_ms()}
    await runtime.facts.put_once(key + "/error", error)


async def _create(runtime: Runtime, key: str, request: JobRequest, tags: dict[str, str]) -> str:
    for wait_s in RATE_WAITS_S:
        try:
            return await runtime.create_sandbox(key, request, tags)
        except RuntimeFailure as failure:
            if failure.type != "ResourceExhaustedError" or "rate limit" not in failure.message:
                raise
            await runtime.sleep(wait_s)
    return await runtime.create_sandbox(key, request, tags)


async def _adopt(runtime: Runtime, key: str) -> Optional[str]:
    for found in await runtime.find({"key": key}):
        await _record(runtime, key, found.sandbox_id)
        return "adopted " + found.sandbox_id
    return None


async def _record(runtime: Runtime, key: str, sandbox_id: str) -> None:
    await runtime.facts.put_once(key + "/sandbox", {"id": sandbox_id, "at_ms": runtime.now_ms()})
    # A cancellation that came while Modal was scheduling.
    if await runtime.facts.get(key + "/cancel") is not None:
        await runtime.terminate(sandbox_id)
