"""The resources that callers may name. Set when the gateway is deployed, because a proxy token can call everything that the gateway offers."""

import dataclasses
import json
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .documents import JobRequest

VARIABLE = "CRUCIBLE_GATEWAY_POLICY"
REGISTRIES = "CRUCIBLE_GATEWAY_REGISTRIES"
SECRETS = "CRUCIBLE_GATEWAY_SECRETS"
DOCKER_HUB = "docker.io"


@dataclasses.dataclass(frozen=True)
class Policy:
    # Hosts of registries, or `host/path` for a part of one.
    registries: tuple[str, ...] = (DOCKER_HUB, "nvcr.io", "ghcr.io", "quay.io", "public.ecr.aws")
    # Names of Modal Secrets.
    secrets: tuple[str, ...] = ()
    # Prefix of the names of volumes.
    volumes: str = "crucible-"

    def refusal(self, request: "JobRequest") -> "str | None":
        """Returns why a request is not allowed."""
        image = request.image
        if image.reference is not None:
            full = full_reference(image.reference)
            if not any(full.startswith(allowed.rstrip("/") + "/") for allowed in self.registries):
                return "the image %s uses a registry that was not allowed at deployment: %s" % (image.reference, ", ".join(self.registries))
        for name in [*request.secrets, *([image.secret] if image.secret else [])]:
            if name not in self.secrets:
                return "the secret %s was not allowed at deployment" % name
        return next((self.volume_refusal(name) for name in request.volumes.values() if self.volume_refusal(name)), None)

    def volume_refusal(self, name: str) -> "str | None":
        return None if name.startswith(self.volumes) else "the volume %s does not begin with %s" % (name, self.volumes)


def full_reference(reference: str) -> str:
    """Adds the registry of a reference without one: the first part is a host if it has a dot or a port, or is `localhost`."""
    first, slash, _ = reference.partition("/")
    if slash and (re.search(r"[.:]", first) or first == "localhost"):
        return reference
    return "%s/%s" % (DOCKER_HUB, reference if slash else "library/" + reference)


def dump(policy: Policy) -> str:
    return json.dumps(dataclasses.asdict(policy))


def from_environment() -> Policy:
    """Reads the policy that the deployment wrote into the image of the gateway; when deploying, that of the user's settings."""
    text = os.environ.get(VARIABLE)
    if not text:
        usual = Policy()
        registries = _names_in(os.environ.get(REGISTRIES)) or usual.registries
        return Policy(registries, _names_in(os.environ.get(SECRETS)), usual.volumes)
    read = json.loads(text)
    return Policy(tuple(read["registries"]), tuple(read["secrets"]), read["volumes"])


def _names_in(text: "str | None") -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
