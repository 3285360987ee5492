"""The runtime on Modal's client, 1.6. The only module of the gateway that imports it."""

import asyncio
import time
from typing import Literal, Optional

import modal
from modal.exception import Error, NotFoundError, OutputExpiredError
from modal.exception import TimeoutError as ModalTimeout

from .documents import JobRequest
from .names import Names
from .runtime import CONNECTION_ERROR, ListedSandbox, RuntimeFailure, Volume

# Installs Python with the image's own package manager if it is missing. `add_python` would replace the Python of images that have one.
PYTHON_IF_MISSING = (
    "RUN command -v python3 >/dev/null 2>&1"
    " || (apt-get update && apt-get install -y --no-install-recommends python3 ca-certificates)"
    " || apk add --no-cache python3 || microdnf install -y python3 || dnf install -y python3 || yum install -y python3"
)
PYTHON_VERSION = "3.12"

# `get_tags` is one call per Sandbox.
TAG_CALLS_AT_ONCE = 16


class _ModalErrors:
    """Turns exceptions of the client into `RuntimeFailure`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type, error, _traceback) -> None:
        if isinstance(error, Error):
            raise RuntimeFailure(type(error).__name__, str(error)) from error
        # The network: callers know it by one name.
        if isinstance(error, OSError):
            raise RuntimeFailure(CONNECTION_ERROR, "%s: %s" % (type(error).__name__, error)) from error


errors = _ModalErrors()


class DictFacts:
    """A Modal Dict. Its entries expire 7 days after they were last read or written, which is longer than any Sandbox lives."""

    def __init__(self, name: str):
        self._dict = modal.Dict.from_name(name, create_if_missing=True)
        self._pending = modal.Dict.from_name(name + "-pending", create_if_missing=True)

    async def put_once(self, name: str, value: object) -> bool:
        with errors:
            return await self._dict.put.aio(name, value, skip_if_exists=True)

    async def get(self, name: str) -> Optional[object]:
        with errors:
            return await self._dict.get.aio(name)

    async def replace(self, name: str, value: object) -> None:
        with errors:
            await self._dict.put.aio(name, value)

    async def add_pending(self, key: str, tags: dict[str, str]) -> None:
        with errors:
            await self._pending.put.aio(key, tags)

    async def remove_pending(self, key: str) -> None:
        with errors:
            await self._pending.pop.aio(key, None)

    async def pending(self) -> dict[str, dict[str, str]]:
        with errors:
            return {key: tags async for key, tags in self._pending.items.aio()}


class ModalRuntime:
    sdk = modal.__version__

    def __init__(self, names: Names):
        self._names = names
        self.facts = DictFacts(names.registry)
        self.environment = modal.config.config.get("environment") or "main"

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def spawn_launch(self, key: str, request: JobRequest) -> str:
        with errors:
            launcher = modal.Function.from_name(self._names.app, "launch_job")
            return (await launcher.spawn.aio(key, request.model_dump())).object_id

    async def launch_state(self, call_id: str) -> Literal["pending", "over"]:
        try:
            await modal.FunctionCall.from_id(call_id).get.aio(timeout=0)
            return "over"
        except (OutputExpiredError, NotFoundError):
            return "over"
        except (ModalTimeout, TimeoutError):
            return "pending"
        except (modal.exception.ServiceError, modal.exception.ConnectionError, modal.exception.InternalError, OSError) as error:
            raise RuntimeFailure(type(error).__name__, str(error)) from error
        except Exception:
            # The exception comes from the launcher, or from Modal for a launcher that was stopped.
            return "over"

    async def create_sandbox(self, key: str, request: JobRequest, tags: dict[str, str]) -> str:
        with errors:
            app = await modal.App.lookup.aio(self._names.jobs_app, create_if_missing=True)
            sandbox = await modal.Sandbox.create.aio(
                *request.command,
                app=app,
                name=key,
                tags=tags,
                image=_image_of(request),
                env=dict(request.env),
                secrets=[modal.Secret.from_name(name) for name in request.secrets],
                timeout=request.timeout_s,
                gpu=request.gpu,
                # Modal bills the larger of request and use: with the request as the limit, the price is known.
                cpu=(request.cpu, request.cpu),
                memory=(request.memory_mib, request.memory_mib),
                volumes={path: modal.Volume.from_name(name, create_if_missing=True) for path, name in request.volumes.items()},
            )
            return sandbox.object_id

    async def find(self, tags: dict[str, str]) -> list[ListedSandbox]:
        with errors:
            try:
                app = await modal.App.lookup.aio(self._names.jobs_app)
            except NotFoundError:
                return []
            listed = [each async for each in modal.Sandbox.list.aio(app_id=app.app_id, tags=tags)]
            limit = asyncio.Semaphore(TAG_CALLS_AT_ONCE)

            async def read(sandbox: modal.Sandbox) -> ListedSandbox:
                async with limit:
                    return ListedSandbox(sandbox.object_id, await sandbox.get_tags.aio())

            return list(await asyncio.gather(*(read(each) for each in listed)))

    async def exit_code(self, sandbox_id: str) -> Optional[int]:
        with errors:
            sandbox = await modal.Sandbox.from_id.aio(sandbox_id)
            return await sandbox.poll.aio()

    async def terminate(self, sandbox_id: str) -> None:
        with errors:
            await (await modal.Sandbox.from_id.aio(sandbox_id)).terminate.aio()

    async def logs(self, sandbox_id: str, lines: int) -> list[str]:
        with errors:
            sandbox = await modal.Sandbox.from_id.aio(sandbox_id)
            text = "".join([entry.message async for entry in sandbox.logs.tail.aio(lines)])
            return text.splitlines()[-lines:]

    async def rates(self) -> dict[str, str]:
        with errors:
            rates = await modal.Workspace.from_context().billing.rates.aio()
            return {key: str(value) for key, value in rates.items()}

    async def volumes(self, prefix: str) -> list[Volume]:
        with errors:
            found = []
            for volume in await modal.Volume.objects.list.aio():
                if volume.name is not None and volume.name.startswith(prefix):
                    info = await volume.info.aio()
                    found.append(Volume(volume.name, int(info.created_at.timestamp() * 1000)))
            return found

    async def delete_volume(self, name: str) -> None:
        with errors:
            await modal.Volume.objects.delete.aio(name, allow_missing=True)


def _image_of(request: JobRequest) -> modal.Image:
    """Modal builds an image once for each definition, and keeps it."""
    wanted = request.image
    if wanted.reference is None:
        image = modal.Image.debian_slim(python_version=PYTHON_VERSION)
    else:
        secret = modal.Secret.from_name(wanted.secret) if wanted.secret else None
        image = modal.Image.from_registry(wanted.reference, secret=secret, setup_dockerfile_commands=[PYTHON_IF_MISSING])
    return image.uv_pip_install(*wanted.requirements) if wanted.requirements else image
