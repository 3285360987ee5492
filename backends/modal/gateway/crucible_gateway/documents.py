"""The documents of the HTTP contract. Requests with unknown fields are refused; `openapi.json` is generated from these classes."""

from typing import Annotated, Literal, Optional

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

# Legal as the name of a Sandbox, and as the value of a tag.
Key = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Tag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:/-]{1,255}$")]
VolumeName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
# One requirement of pip without options, URLs and paths, so that a caller cannot make the build read other sources.
Requirement = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?[A-Za-z0-9.,<>=!~* -]*$", max_length=200)]

# Modal ends every Sandbox after 24 hours.
TIMEOUT_S_MAX = 24 * 60 * 60

Phase = Literal["launching", "running", "ended", "cancelled", "launch_failed", "launch_lost"]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ImageRequest(Request):
    # Reference in a registry, such as `pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime`; a slim Debian with Python when null.
    reference: Optional[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:/@-]{1,255}$")]] = None
    # Name of the Modal Secret with the login to the registry.
    secret: Optional[str] = None
    # Packages installed into the image when it is built, once for all Sandboxes with the same list.
    requirements: Annotated[list[Requirement], Field(max_length=500)] = []


class JobRequest(Request):
    """One Sandbox. `command` and `env` are not compared when a request is repeated: they carry what is new in each send."""

    owner: Key
    tags: Annotated[dict[Tag, Tag], Field(max_length=8)] = {}
    image: ImageRequest = ImageRequest()
    command: Annotated[list[Annotated[str, StringConstraints(max_length=16384)]], Field(min_length=1, max_length=16)]
    env: dict[str, str] = {}
    # GPU as Modal names it: `H100!:2`.
    gpu: Optional[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+-]+!?(:[1-8])?$")]] = None
    # Physical cores, two vCPUs each.
    cpu: Annotated[float, Field(gt=0, le=64)]
    memory_mib: Annotated[int, Field(ge=128, le=344064)]
    timeout_s: Annotated[int, Field(ge=1, le=TIMEOUT_S_MAX)]
    # Volumes by absolute path.
    volumes: dict[Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9/._-]+$")], VolumeName] = {}
    # Names of Modal Secrets that become environment variables.
    secrets: list[str] = []
    # A request that arrives later starts nothing. Milliseconds since 1970.
    send_by_ms: int


class JobError(BaseModel):
    # Name of the exception of Modal's client.
    type: str
    message: str


class Job(BaseModel):
    key: str
    phase: Phase
    owner: Optional[str] = None
    tags: dict[str, str] = {}
    sandbox_id: Optional[str] = None
    # Exit code as Modal reports it: 124 for its time limit, 137 for a termination. 0 does not prove success.
    exit_code: Optional[int] = None
    error: Optional[JobError] = None
    accepted_at_ms: Optional[int] = None
    # When Modal had scheduled the Sandbox. Nothing is billed earlier.
    running_at_ms: Optional[int] = None
    # When this gateway first saw the end.
    ended_at_ms: Optional[int] = None


class Listed(BaseModel):
    key: str
    # Id of the Sandbox; null before Modal knows it.
    sandbox_id: Optional[str] = None
    tags: dict[str, str]


class JobList(BaseModel):
    items: list[Listed]


class Rates(BaseModel):
    observed_at_ms: int
    # USD by Modal's name of the rate, such as `gpu_hour_cost_h100`, as decimal text.
    usd: dict[str, str]


class VolumeItem(BaseModel):
    name: str
    created_at_ms: int
    # When a Sandbox last mounted the volume; null if that is longer ago than the registry remembers (7 days).
    used_at_ms: Optional[int] = None


class VolumeList(BaseModel):
    items: list[VolumeItem]


class LogTail(BaseModel):
    lines: list[str]


class Allowed(BaseModel):
    registries: list[str]
    secrets: list[str]
    volumes: str


class Health(BaseModel):
    ok: bool
    api: int
    features: list[str]
    # Version of the `modal` package.
    sdk: str
    environment: str
    allowed: Allowed


class Problem(BaseModel):
    code: Literal["invalid", "not-allowed", "key-reused", "too-late", "unknown-key", "rate-limited", "modal"]
    message: str
    # Name of the exception, for `modal`.
    type: Optional[str] = None
