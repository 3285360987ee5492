"""Names of everything that the gateway has in the workspace, from one prefix."""

import dataclasses
import re
from typing import Mapping

PREFIX = "CRUCIBLE_GATEWAY_PREFIX"
DEFAULT_PREFIX = "crucible"


@dataclasses.dataclass(frozen=True)
class Names:
    prefix: str

    @property
    def app(self) -> str:
        return self.prefix + "-gateway"

    @property
    def label(self) -> str:
        """Part of the address: `https://WORKSPACE--LABEL.modal.run`."""
        return self.prefix + "-gateway"

    @property
    def jobs_app(self) -> str:
        return self.prefix + "-jobs"

    @property
    def registry(self) -> str:
        return self.prefix + "-jobs"

    def variables(self) -> dict[str, str]:
        return {PREFIX: self.prefix}


def names_from(environment: Mapping[str, str]) -> Names:
    prefix = environment.get(PREFIX) or DEFAULT_PREFIX
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", prefix):
        raise ValueError("%s is %r: use up to 31 of a-z, 0-9 and dashes" % (PREFIX, prefix))
    return Names(prefix)
