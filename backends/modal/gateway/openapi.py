"""Prints the OpenAPI document of the gateway. Needs FastAPI, and neither Modal nor an account: `python openapi.py > openapi.json`."""

import json
import sys

from crucible_gateway.policy import Policy
from crucible_gateway.web import build


def no_runtime():
    raise AssertionError("the document is generated without a runtime")


if __name__ == "__main__":
    json.dump(build(no_runtime, Policy()).openapi(), sys.stdout, indent=2, sort_keys=True)
    print()
