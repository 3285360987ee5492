"""The HTTP contract, as a FastAPI app over any runtime."""

from typing import Annotated, Callable, Optional

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from . import API, FEATURES, documents
from .jobs import Jobs, KeyReused, TooLate, is_spend_limit
from .policy import Policy
from .runtime import CONNECTION_ERROR, Runtime, RuntimeFailure

TITLE = "Crucible gateway on Modal"

# The most log lines that one answer has.
LINES_MAX = 1000

KeyPath = Annotated[documents.Key, Path()]
REFUSALS: dict[int | str, dict] = {status: {"model": documents.Problem} for status in (403, 404, 409, 410, 422, 429, 502)}


def _problem(status: int, code: str, message: str, type_name: Optional[str] = None) -> JSONResponse:
    body = documents.Problem(code=code, message=message, type=type_name)  # pyright: ignore
    return JSONResponse(body.model_dump(exclude_none=True), status)


def _unknown(key: str) -> JSONResponse:
    return _problem(404, "unknown-key", "the key %s is unknown to the registry and to Modal" % key)


def build(runtime: Callable[[], Runtime], policy: Policy, known_rates: Optional[documents.Rates] = None) -> FastAPI:
    """`runtime` is called by each request, so that the document can be generated without one. `known_rates` are those of the deployment."""
    app = FastAPI(title=TITLE, version=str(API), docs_url=None, redoc_url=None, openapi_url=None, responses=REFUSALS)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        # Values are left out: they may be secret.
        words = ["%s: %s" % (".".join(str(part) for part in one["loc"]), one["msg"]) for one in error.errors()]
        return _problem(422, "invalid", "; ".join(words))

    @app.exception_handler(RuntimeFailure)
    async def failed(_: Request, failure: RuntimeFailure) -> JSONResponse:
        if failure.type == "ResourceExhaustedError" and not is_spend_limit(failure):
            return _problem(429, "rate-limited", failure.message, failure.type)
        return _problem(502, "modal", failure.message, failure.type)

    _add_jobs(app, runtime, policy)
    _add_rest(app, runtime, policy, known_rates)
    return app


def _add_jobs(app: FastAPI, runtime: Callable[[], Runtime], policy: Policy) -> None:
    @app.put("/v1/jobs/{key}", operation_id="submit", status_code=202, response_model=documents.Job, responses={200: {"model": documents.Job}})
    async def submit(key: KeyPath, request: documents.JobRequest):
        refusal = policy.refusal(request)
        if refusal is not None:
            return _problem(403, "not-allowed", refusal)
        try:
            job, is_new = await Jobs(runtime()).submit(key, request)
        except KeyReused:
            return _problem(409, "key-reused", "the key %s belongs to a different request" % key)
        except TooLate:
            return _problem(410, "too-late", "the request arrived after its send_by_ms")
        return JSONResponse(job.model_dump(), 202 if is_new else 200)

    @app.get("/v1/jobs", operation_id="list")
    async def list_jobs(owner: Annotated[documents.Key, Query()]) -> documents.JobList:
        return documents.JobList(items=await Jobs(runtime()).running(owner))

    @app.get("/v1/jobs/{key}", operation_id="read", response_model=documents.Job)
    async def read(key: KeyPath):
        return await Jobs(runtime()).read(key) or _unknown(key)

    @app.post("/v1/jobs/{key}/cancel", operation_id="cancel")
    async def cancel(key: KeyPath) -> documents.Job:
        return await Jobs(runtime()).cancel(key)

    @app.get("/v1/jobs/{key}/logs", operation_id="logs", response_model=documents.LogTail)
    async def logs(key: KeyPath, lines: Annotated[int, Query(ge=1, le=LINES_MAX)] = 200):
        found = await Jobs(runtime()).logs(key, lines)
        return _unknown(key) if found is None else documents.LogTail(lines=found)


def _add_rest(app: FastAPI, runtime: Callable[[], Runtime], policy: Policy, known_rates: Optional[documents.Rates]) -> None:
    @app.get("/v1/health", operation_id="health")
    async def health() -> documents.Health:
        here = runtime()
        allowed = documents.Allowed(registries=list(policy.registries), secrets=list(policy.secrets), volumes=policy.volumes)
        return documents.Health(ok=True, api=API, features=list(FEATURES), sdk=here.sdk, environment=here.environment, allowed=allowed)

    @app.get("/v1/offers", operation_id="offers")
    async def offers() -> documents.Rates:
        here = runtime()
        try:
            return documents.Rates(observed_at_ms=here.now_ms(), usd=await here.rates())
        except RuntimeFailure as failure:
            # Modal may keep its rates from code that runs inside it. While it cannot be reached, prices are of no use.
            if known_rates is None or failure.type == CONNECTION_ERROR:
                raise
            return known_rates

    @app.get("/v1/volumes", operation_id="volumes", response_model=documents.VolumeList)
    async def volumes(prefix: Annotated[documents.VolumeName, Query()]):
        refusal = policy.volume_refusal(prefix)
        if refusal is not None:
            return _problem(403, "not-allowed", refusal)
        here = runtime()
        items = []
        for volume in await here.volumes(prefix):
            used = await here.facts.get("volume/" + volume.name)
            used_at_ms = used if isinstance(used, int) else None
            items.append(documents.VolumeItem(name=volume.name, created_at_ms=volume.created_at_ms, used_at_ms=used_at_ms))
        return documents.VolumeList(items=items)

    @app.delete("/v1/volumes/{name}", operation_id="deleteVolume", status_code=204, response_model=None)
    async def delete_volume(name: Annotated[documents.VolumeName, Path()]):
        refusal = policy.volume_refusal(name)
        if refusal is not None:
            return _problem(403, "not-allowed", refusal)
        await runtime().delete_volume(name)
