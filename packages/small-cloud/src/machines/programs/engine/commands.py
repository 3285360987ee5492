"""The commands that inspect, and those for images and registries."""

import base64
import json
import re
import sys

from . import containers
from .world import DockerError, client_config, full_name, read_json, write_json

PS_OPTIONS = {
    "-a": "flag",
    "--all": "flag",
    "-q": "flag",
    "--quiet": "flag",
    "--no-trunc": "flag",
    "-f": "value",
    "--filter": "value",
    "--format": "value",
}
LOGIN_OPTIONS = {
    "-u": "value",
    "--username": "value",
    "-p": "value",
    "--password": "value",
    "--password-stdin": "flag",
}


def ps(_world, options):
    filters = [text.partition("=") for text in options.all("-f", "--filter")]
    shown = [
        container
        for container in containers.all_containers()
        if (options.has("-a", "--all") or container.is_running) and all(_matches(container, one) for one in filters)
    ]
    pattern = options.one("--format")
    if not options.has("-q", "--quiet") and pattern is None:
        print("CONTAINER ID   IMAGE   STATUS   NAMES")
    for container in shown:
        record = container.record
        short = record["id"] if options.has("--no-trunc") else record["id"][:12]
        if options.has("-q", "--quiet"):
            print(short)
        elif pattern is None:
            print("   ".join((short, record["image"], _status(record), record["name"])))
        else:
            row = {"ID": short, "Image": record["image"], "Names": record["name"]}
            row.update(Status=_status(record), State=record["status"], Labels=_labels(record))
            print(_render(pattern, row))


def _labels(record):
    return ",".join("%s=%s" % pair for pair in sorted(record["labels"].items()))


def _status(record):
    return "Exited (%d)" % record["exitCode"] if record["status"] == "exited" else "Up"


def _matches(container, wanted):
    key, _, value = wanted
    record = container.record
    if key == "label":
        name, has_value, text = value.partition("=")
        return name in record["labels"] and (not has_value or record["labels"][name] == text)
    if key == "name":
        return re.search(value.lstrip("/"), record["name"]) is not None
    if key == "status":
        return record["status"] == value
    if key == "id":
        return record["id"].startswith(value)
    raise DockerError("Error response from daemon: invalid filter '%s'" % key)


def logs(_world, options):
    container = containers.get(_only(options))
    for path, target in ((container.stdout, sys.stdout), (container.stderr, sys.stderr)):
        with open(path, errors="replace") as file:
            target.write(file.read())


def inspect(_world, options):
    documents = [_document(containers.get(word).record) for word in options.words]
    _print_documents(documents, options.one("-f", "--format"))


def _document(record):
    state = {
        "Status": record["status"],
        "Running": record["status"] == "running",
        "ExitCode": record["exitCode"],
        "Pid": record["pid"] if record["status"] == "running" else 0,
    }
    config = {"Image": record["image"], "Labels": record["labels"], "Env": record["env"], "Cmd": record["argv"]}
    return {"Id": record["id"], "Name": "/" + record["name"], "State": state, "Config": config}


def _print_documents(documents, pattern):
    if pattern is None:
        print(json.dumps(documents, indent=4))
    for document in documents if pattern is not None else ():
        print(_render(pattern, document))


def _render(pattern, document):
    """Supports templates of fields only: `{{.State.Status}}`, `{{json .Config.Labels}}`."""

    def field(match):
        value = document
        for name in match.group(2).strip(".").split("."):
            if not isinstance(value, dict) or name not in value:
                raise DockerError("template parsing error: no field %s" % match.group(2))
            value = value[name]
        if match.group(1) or not isinstance(value, (str, int)):
            return json.dumps(value)
        return str(value).lower() if isinstance(value, bool) else str(value)

    text = re.sub(r"\{\{\s*(json\s+)?(\.[\w.]+)\s*\}\}", field, pattern)
    if "{{" in text:
        raise DockerError("template parsing error: machines of this cloud know fields only: %s" % pattern)
    return text


def pull(world, options):
    image = _only(options)
    digest = world.pull(image)
    if not options.has("-q", "--quiet"):
        print("%s: Pull complete" % digest.partition(":")[2][:12])
        print("Digest: %s" % digest)
        print("Status: Downloaded newer image for %s" % full_name(image))
    print(full_name(image))


def image_inspect(world, options):
    for image in options.words:
        if not world.has_image(image):
            raise DockerError("Error response from daemon: No such image: %s" % full_name(image))
    _print_documents([{"RepoTags": [full_name(image)]} for image in options.words], options.one("-f", "--format"))


def login(world, options):
    registry = options.words[0].replace("https://", "").split("/")[0] if options.words else "docker.io"
    username = options.one("-u", "--username")
    password = options.one("-p", "--password")
    if options.has("--password-stdin"):
        password = sys.stdin.read().rstrip("\n")
    if not username or not password:
        raise DockerError("Error: Cannot perform an interactive login from a non TTY device")
    world.log_in(registry, username, password)
    config = read_json(client_config(), {})
    auth = base64.b64encode(("%s:%s" % (username, password)).encode()).decode()
    config.setdefault("auths", {})[registry] = {"auth": auth}
    write_json(client_config(), config)
    print("Login Succeeded")


def _only(options):
    if len(options.words) != 1:
        raise DockerError("this docker command requires exactly 1 argument.")
    return options.words[0]
