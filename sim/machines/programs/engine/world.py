"""What the engine keeps, and what its registries have."""

import base64
import contextlib
import fcntl
import json
import os
import time

ROOT = "/var/lib/docker"


class DockerError(Exception):
    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


class World:
    """`docker.json` in the folder of the machine's programs says what there is to pull, and from whom."""

    def __init__(self, toolbox):
        self.toolbox = toolbox
        with open(os.path.join(toolbox, "docker.json")) as file:
            told = json.load(file)
        self.is_isolated = told["isIsolated"]
        self.gpu_count = told["gpuCount"]
        self._pull_seconds = told.get("pullMs", 0) / 1000
        self._absent = told.get("absentImages", [])
        self._logins = told.get("logins", {})

    @contextlib.contextmanager
    def locked(self):
        """Nobody else changes what the engine keeps."""
        os.makedirs(os.path.join(ROOT, "containers"), exist_ok=True)
        with open(os.path.join(ROOT, "lock"), "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def images(self):
        return read_json(os.path.join(ROOT, "images.json"), [])

    def set_images(self, images):
        with self.locked():
            write_json(os.path.join(ROOT, "images.json"), images)

    def has_image(self, image):
        return full_name(image) in self.images()

    def pull(self, image):
        """Waits as long as a pull takes, then the image is there. Raises when it cannot be had."""
        name = full_name(image)
        registry = registry_of(name)
        if registry in self._logins and self._login_of(registry) != self._wanted(registry):
            message = "Error response from daemon: pull access denied for %s: unauthorized: authentication required"
            raise DockerError(message % image)
        if any(part == "*" or part in name for part in self._absent):
            raise DockerError(
                "Error response from daemon: manifest for %s not found: manifest unknown: manifest unknown" % image
            )
        time.sleep(self._pull_seconds)
        self.set_images(sorted(set(self.images()) | {name}))

    def accepts(self, registry, username, password):
        """A registry that nobody described takes whatever it is told."""
        return registry not in self._logins or self._wanted(registry) == "%s:%s" % (username, password)

    def _wanted(self, registry):
        login = self._logins[registry]
        return "%s:%s" % (login["username"], login["password"])

    @staticmethod
    def _login_of(registry):
        auth = read_json(client_config(), {}).get("auths", {}).get(registry, {}).get("auth", "")
        return base64.b64decode(auth).decode()


def client_config():
    folder = os.environ.get("DOCKER_CONFIG") or os.path.join(os.path.expanduser("~"), ".docker")
    return os.path.join(folder, "config.json")


def full_name(image):
    """With a tag, as docker completes it."""
    last = image.rpartition("/")[2]
    return image if ":" in last or "@" in last else image + ":latest"


def registry_of(name):
    first, slash, _ = name.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"


def read_json(path, default):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return default


def write_json(path, value):
    """Whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = "%s.%d" % (path, os.getpid())
    with open(part, "w") as file:
        json.dump(value, file)
    os.replace(part, path)
