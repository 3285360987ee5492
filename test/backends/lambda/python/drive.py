"""Uses Lambda's API with a client that others generated from its OpenAPI document: reads {endpoint, key} and prints what it read."""

import json
import sys

from lambda_ai_cloud_api_client import AuthenticatedClient
from lambda_ai_cloud_api_client.api.filesystems import create_filesystem, filesystem_delete, list_filesystems
from lambda_ai_cloud_api_client.api.images import list_images
from lambda_ai_cloud_api_client.api.instances import (
    get_instance,
    launch_instance,
    list_instance_types,
    list_instances,
    post_instance,
    restart_instance,
    terminate_instance,
)
from lambda_ai_cloud_api_client.api.ssh_keys import add_ssh_key, delete_ssh_key, list_ssh_keys
from lambda_ai_cloud_api_client.models import (
    AddSSHKeyRequest,
    FilesystemCreateRequest,
    InstanceLaunchRequest,
    InstanceModificationRequest,
    InstanceRestartRequest,
    InstanceTerminateRequest,
)
from models import strays

asked = json.load(sys.stdin)
problems = []


def client(key=asked["key"]):
    return AuthenticatedClient(base_url=asked["endpoint"], token=key, raise_on_unexpected_status=True)


def call(part, by=None, **arguments):
    """The answer as the client's model; each field that the model lacks is a problem."""
    answer = part.sync(client=by or client(), **arguments)
    name = part.__name__.rsplit(".", 1)[-1]
    problems.extend(f"{name}: {stray}" for stray in strays(answer))
    return answer


def refused(part, by=None, **arguments):
    """The kind of the error, and its code."""
    error = call(part, by, **arguments).error
    return [type(error).__name__, error.code]


def launch_request(**changes):
    fields = {
        "region_name": "us-east-1",
        "instance_type_name": "gpu_1x_a10",
        "ssh_key_names": ["crucible"],
        "name": "made-by-another",
        "hostname": "made-by-another",
        "user_data": "#!/bin/sh\nsleep 600\n",
        "tags": [{"key": "team", "value": "Judges"}],
        "file_system_names": ["cache"],
    }
    return InstanceLaunchRequest.from_dict({**fields, **changes})


def until(check):
    """The first answer of an instance that fits; the test has a time limit."""
    while True:
        found = check()
        if found is not None:
            return found


said = {}
types = call(list_instance_types).data
a10 = types["gpu_1x_a10"]
said["type"] = [
    len(types.additional_keys),
    a10.instance_type.price_cents_per_hour,
    a10.instance_type.specs.gpus,
    [region.name.value for region in a10.regions_with_capacity_available],
]

made = call(add_ssh_key, body=AddSSHKeyRequest(name="generated")).data
call(add_ssh_key, body=AddSSHKeyRequest(name="given", public_key=made.public_key))
said["keys"] = sorted(key.name for key in call(list_ssh_keys).data)
said["private"] = made.private_key.startswith("-----BEGIN")
call(delete_ssh_key, id=made.id)
said["keys left"] = sorted(key.name for key in call(list_ssh_keys).data)

disk = call(
    create_filesystem, body=FilesystemCreateRequest.from_dict({"name": "cache", "region": "us-east-1"})
).data
said["disk"] = [disk.mount_point, disk.is_in_use]

(number,) = call(launch_instance, body=launch_request()).data.instance_ids
active = until(lambda: (one := call(get_instance, id=number).data).status.value == "active" and one or None)
said["instance"] = [active.name, active.hostname, active.region.name.value, active.instance_type.name]
said["tags"] = {tag.key: tag.value for tag in active.tags}
said["mounts"] = [mount.mount_point for mount in active.file_system_mounts]
said["listed"] = [one.id == number for one in call(list_instances).data]
said["renamed"] = call(post_instance, id=number, body=InstanceModificationRequest(name="renamed")).data.name
said["in use"] = refused(filesystem_delete, id=disk.id)
call(restart_instance, body=InstanceRestartRequest(instance_ids=[number]))
ended = call(terminate_instance, body=InstanceTerminateRequest(instance_ids=[number])).data
said["ending"] = [one.status.value for one in ended.terminated_instances]
until(lambda: call(get_instance, id=number).data.status.value == "terminated" or None)
said["listed after"] = len(call(list_instances).data)
said["deleted disks"] = [one == disk.id for one in call(filesystem_delete, id=disk.id).data.deleted_ids]
said["disks"] = len(call(list_filesystems).data)
said["images"] = len(call(list_images).data) > 0

said["errors"] = {
    "wrong key": refused(list_instances, client("wrong")),
    "no such instance": refused(get_instance, id="0" * 32),
    "nothing to end": refused(terminate_instance, body=InstanceTerminateRequest(instance_ids=["0" * 32])),
    "no capacity": refused(
        launch_instance, body=launch_request(region_name="us-west-1", file_system_names=[])
    ),
    "no such key": refused(launch_instance, body=launch_request(ssh_key_names=["other"])),
    "no such disk": refused(launch_instance, body=launch_request()),
    "wrong parameters": refused(launch_instance, body=launch_request(ssh_key_names=[], file_system_names=[])),
    "same key twice": refused(add_ssh_key, body=AddSSHKeyRequest(name="given")),
    "no such key to delete": refused(delete_ssh_key, id="0" * 32),
}
json.dump({"said": said, "problems": problems}, sys.stdout)
