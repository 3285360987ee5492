"""Reads [{action, body}], the bodies that the backend sent, and prints what a generated client's models find wrong with them."""

import json
import sys

from lambda_ai_cloud_api_client.models import (
    AddSSHKeyRequest,
    InstanceLaunchRequest,
    InstanceTerminateRequest,
)
from models import strays

MODELS = {
    "launch": InstanceLaunchRequest,
    "terminate": InstanceTerminateRequest,
    "add-ssh-key": AddSSHKeyRequest,
}

problems = []
for call in json.load(sys.stdin):
    action, body = call["action"], call["body"]
    try:
        read = MODELS[action].from_dict(body)
        problems.extend(f"{action}: {stray}" for stray in strays(read))
        if read.to_dict() != body:
            problems.append(f"{action}: is read as {read.to_dict()}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problems.append(f"{action}: {error!r}")
json.dump(problems, sys.stdout)
