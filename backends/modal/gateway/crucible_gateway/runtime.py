"""The interface of Modal that the gateway uses. `on_modal` implements it; tests implement it in memory."""

import dataclasses
from typing import Literal, Optional, Protocol

from .documents import JobRequest


# The type of a `RuntimeFailure` of the network.
CONNECTION_ERROR = "ConnectionError"


class RuntimeFailure(Exception):
    """An error of Modal, by the name of its exception."""

    def __init__(self, type_name: str, message: str):
        super().__init__(message)
        self.type = type_name
        self.message = message


@dataclasses.dataclass(frozen=True)
class ListedSandbox:
    """A Sandbox that Modal lists: queued or running."""

    sandbox_id: str
    tags: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Volume:
    name: str
    created_at_ms: int


class Facts(Protocol):
    """The registry: one fact per name, and each is written once, so that two writers cannot overwrite each other."""

    async def put_once(self, name: str, value: object) -> bool:
        """Returns False if the fact exists; it is then unchanged."""
        ...

    async def get(self, name: str) -> Optional[object]: ...

    async def replace(self, name: str, value: object) -> None:
        """For times of last use only, where the last writer may win."""
        ...

    async def add_pending(self, key: str, tags: dict[str, str]) -> None:
        """Notes a launch that Modal does not list yet."""
        ...

    async def remove_pending(self, key: str) -> None:
        """Absent is success."""
        ...

    async def pending(self) -> dict[str, dict[str, str]]:
        """Tags of launches by key, including launches whose launcher died."""
        ...


class Runtime(Protocol):
    """Methods raise `RuntimeFailure` for errors of Modal."""

    facts: Facts
    sdk: str
    environment: str

    def now_ms(self) -> int: ...

    async def spawn_launch(self, key: str, request: JobRequest) -> str:
        """Starts `launcher.launch` in a container of its own, and returns the id of the call at once."""
        ...

    async def launch_state(self, call_id: str) -> Literal["pending", "over"]:
        """`over`: it has returned or failed, or Modal forgot it."""
        ...

    async def create_sandbox(self, key: str, request: JobRequest, tags: dict[str, str]) -> str:
        """Returns the id when Modal has scheduled it: after up to 21 minutes for a GPU."""
        ...

    async def find(self, tags: dict[str, str]) -> list[ListedSandbox]:
        """Sandboxes that have at least these tags and have not ended, asked of Modal."""
        ...

    async def exit_code(self, sandbox_id: str) -> Optional[int]:
        """None while it runs."""
        ...

    async def terminate(self, sandbox_id: str) -> None:
        """Returns when Modal has accepted it. Ended already is success."""
        ...

    async def logs(self, sandbox_id: str, lines: int) -> list[str]: ...

    async def rates(self) -> dict[str, str]: ...

    async def volumes(self, prefix: str) -> list[Volume]: ...

    async def delete_volume(self, name: str) -> None:
        """Absent is success."""
        ...

    async def sleep(self, seconds: float) -> None: ...
