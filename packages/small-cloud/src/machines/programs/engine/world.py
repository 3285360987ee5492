"""The engine's storage, and its requests to registries."""

import base64
import contextlib
import fcntl
import json
import os
import time

from call import ask_manager

ROOT = "/var/lib/docker"


class DockerError(Exception):
    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


class World:
    """`machine.json` in the folder of the machine's programs describes the machine, and the address for registry requests."""

    def __init__(self, toolbox):
        self.toolbox = toolbox
        with open(os.path.join(toolbox, "machine.json")) as file:
            told = json.load(file)
        self.is_isolated = told["isIsolated"]
        self.gpu_count = told["gpuCount"]
        self._door = (told["port"], told["token"])

    @contextlib.contextmanager
    def locked(self):
        """Locks the engine's storage."""
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
        """Waits for the duration of a pull. Returns the image's digest. Raises when the pull fails."""
        name = full_name(image)
        registry = registry_of(name)
        answer = self._ask("pull", registry, self._login_of(registry), name)
        time.sleep(answer["pullMs"] / 1000)
        self.set_images(sorted(set(self.images()) | {name}))
        return answer["digest"]

    def log_in(self, registry, username, password):
        """Raises when the registry refuses the login."""
        self._ask("login", registry, {"username": username, "password": password})

    def _ask(self, verb, registry, login, image=None):
        """The machine's manager answers for registries."""
        question = {"verb": verb, "registry": registry, "login": login, "image": image}
        question = {name: value for name, value in question.items() if value}
        called = ask_manager(*self._door, "registry", [json.dumps(question)])
        if called is None or called["exitCode"] != 0:
            raise DockerError("Error response from daemon: no answer: %s" % (called or {}).get("stderr"))
        answer = json.loads(called["stdout"])
        if "refusal" in answer:
            raise DockerError(answer["refusal"])
        return answer

    @staticmethod
    def _login_of(registry):
        auth = read_json(client_config(), {}).get("auths", {}).get(registry, {}).get("auth")
        return auth and dict(zip(("username", "password"), base64.b64decode(auth).decode().split(":", 1)))


def client_config():
    folder = os.environ.get("DOCKER_CONFIG") or os.path.join(os.path.expanduser("~"), ".docker")
    return os.path.join(folder, "config.json")


def full_name(image):
    """Adds docker's default tag."""
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
    """Writes all or nothing."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = "%s.%d" % (path, os.getpid())
    with open(part, "w") as file:
        json.dump(value, file)
    os.replace(part, path)
