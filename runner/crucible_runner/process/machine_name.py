"""The name of this machine on its host."""

from typing import Mapping

MACHINE_VARIABLE = "CRUCIBLE_MACHINE"


def name_of_machine(attempt_id: str, environment: Mapping[str, str]) -> str:
    """Returns `<attempt id>.<deployment>`, which the launch puts into the environment: machines of two deployments on one host may have
    the same attempt id. The attempt id alone when the launch gave no name."""
    name = environment.get(MACHINE_VARIABLE, "")
    return name if name.startswith(attempt_id + ".") else attempt_id
