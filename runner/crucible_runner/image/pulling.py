"""Pulls the image that the order names: logs in where the registry requires it, and retries while a retry may help."""

import contextlib
import os
import re
import signal
import subprocess
import threading
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional

from ..clock import Clock, in_words
from ..endings import Failed
from ..imds import Metadata
from ..process.container import forget_login
from ..retries import RETRIES
from ..store.retry import Pauses, Remark
from ..store.s3.credentials import Keyring, MachineRole, OwnKeys
from . import ecr
from .ecr import Login

# Default time that a registry may fail without delivering another layer.
PATIENCE_MS = 10 * 60_000
_TELL_MS = 30_000
_LINES_KEPT = 20
# The engine repeats what a registry says; longer lines count as several.
_LINE_BYTES = 4_096

# Docker reports no error codes; these are the messages of Docker, registries and containerd.
_DENIED = re.compile(
    r"unauthorized|denied|authentication required|no basic auth credentials|incorrect username or password"
    r"|40[13] (?:Unauthorized|Forbidden)|status(?: code)?:? 40[13]|token has expired"
    # Amazon's registry answers this to a password that is not one of its tokens.
    r"|login attempt to \S+ failed with status: 400",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    r"manifest unknown|manifest for \S+ not found|name unknown|repository \S+ not found|: not found"
    r"|no matching manifest|does not exist|invalid reference format|unsupported media type",
    re.IGNORECASE,
)
_FULL = re.compile(r"no space left on device", re.IGNORECASE)
_LAYER = re.compile(r"([0-9a-f]{12}): (.*)")
_HERE = ("Pull complete", "Already exists")
_DIGEST = re.compile(r"Digest: (sha256:[0-9a-f]{64})")


class Wanted(NamedTuple):
    """The image, and how to access its registry."""

    image: str
    login: Optional[Login]
    """The login that the order names; without one, Amazon's registry is accessed with the machine's role."""


class Said(NamedTuple):
    """The outcome of a docker call."""

    code: int
    lines: List[str]

    @property
    def words(self) -> str:
        return self.lines[-1] if self.lines else "no reason given"


class Puller:
    """Raises `Failed` with reason `image`, `image-login`, `registry` or `disk-full` when the image cannot be pulled."""

    def __init__(self, docker: str, folder: str, clock: Clock, remark: Remark, is_over: Callable[[], bool]) -> None:
        self._docker = docker
        self._folder = folder
        self._clock = clock
        self._remark = remark
        self._is_over = is_over
        self._layers: Dict[str, bool] = {}
        self._told_ms = 0
        self._digest: Optional[str] = None

    def pull(self, wanted: Wanted, environment: Mapping[str, str], patience_ms: int) -> None:
        """Returns without the image only when `is_over`."""
        began_ms = since_ms = self._clock.mono_ms()
        self._remark("pulling the image %s" % wanted.image)
        pauses, most, is_told = Pauses(), 0, False
        try:
            while True:
                said = self._try(wanted, environment)
                if said is None or self._is_over():
                    break
                if self._is_there(wanted.image):
                    self._remark("the image could not be pulled, so the copy on this machine is used: %s" % said.words)
                    return
                _raise_if_final(wanted.image, said)
                here = sum(self._layers.values())
                if here > most:
                    since_ms, most = self._clock.mono_ms(), here
                    pauses.reset()
                if self._clock.mono_ms() - since_ms >= patience_ms:
                    raise Failed("registry", "the registry refuses %s: %s" % (wanted.image, said.words))
                RETRIES.failed(self, "pulling the image failed: %s" % said.words)
                if not is_told:
                    self._remark("pulling failed, trying again: %s" % said.words)
                    is_told = True
                pauses.wait(self._is_over)
                if self._is_over():
                    return
        finally:
            RETRIES.over(self)
            forget_login(self._folder)
        if not self._is_over():
            took = (wanted.image, in_words(self._clock.mono_ms() - began_ms), self._digest or "no digest reported")
            self._remark("the image %s is ready after %s (%s)" % took)

    def _try(self, wanted: Wanted, environment: Mapping[str, str]) -> Optional[Said]:
        """Returns the error, or None when the image is present."""
        own = dict(environment)
        try:
            login = wanted.login or _login_of_machine(wanted.image, environment, self._clock)
        except ecr.Refused as error:
            raise Failed("image-login", "the machine may not read the image %s: %s" % (wanted.image, error)) from error
        except OSError as error:
            return Said(1, ["the registry issued no token: %s" % error])
        if login is not None:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            own["DOCKER_CONFIG"] = self._folder
            registry = registry_of(wanted.image)
            command = [self._docker, "login", "--username", login.username, "--password-stdin"]
            said = self._call(command + ([registry] if registry else []), own, login.password)
            if said.code != 0:
                return said
        said = self._call([self._docker, "pull", wanted.image], own)
        return None if said.code == 0 else said

    def _call(self, command: List[str], environment: Mapping[str, str], typed: Optional[str] = None) -> Said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if typed is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        lines: List[str] = []
        reader = threading.Thread(target=self._read, args=(process, lines), name="docker", daemon=True)
        reader.start()
        if typed is not None:
            try:
                process.stdin.write(typed.encode("utf-8"))
                process.stdin.close()
            except BrokenPipeError:
                pass  # docker refused before it asked for the password
        while reader.is_alive():
            reader.join(0.2)
            if self._is_over():
                # The engine's program may have started others, which would keep the output open.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                break
        return Said(process.wait(), lines)

    def _read(self, process: "subprocess.Popen[bytes]", lines: List[str]) -> None:
        for raw in iter(lambda: process.stdout.readline(_LINE_BYTES), b""):
            line = raw.decode("utf-8", "replace").strip()
            layer, digest = _LAYER.fullmatch(line), _DIGEST.fullmatch(line)
            if layer is not None:
                self._layers[layer.group(1)] = layer.group(2) in _HERE or self._layers.get(layer.group(1), False)
                self._tell()
            elif digest is not None:
                self._digest = digest.group(1)
            elif line:
                lines.append(line)
                del lines[:-_LINES_KEPT]

    def _tell(self) -> None:
        now_ms = self._clock.mono_ms()
        if now_ms - self._told_ms >= _TELL_MS:
            if self._told_ms:
                self._remark("pulling: %d of %d layers are complete" % (sum(self._layers.values()), len(self._layers)))
            self._told_ms = now_ms

    def _is_there(self, image: str) -> bool:
        """An image that was built on this machine is in no registry."""
        return self._call([self._docker, "image", "inspect", image], os.environ).code == 0


def _raise_if_final(image: str, said: Said) -> None:
    # The image name itself may contain any of these words.
    text = "\n".join(said.lines).replace(image, "")
    if _FULL.search(text):
        raise Failed("disk-full", "the image %s does not fit on the machine's disk" % image)
    if _DENIED.search(text):
        raise Failed("image-login", "the registry refuses the image %s to this machine: %s" % (image, said.words))
    if _ABSENT.search(text):
        raise Failed("image", "the registry has no image %s: %s" % (image, said.words))


def _login_of_machine(image: str, environment: Mapping[str, str], clock: Clock) -> Optional[Login]:
    registry = registry_of(image)
    if registry is None or ecr.region_of(registry) is None:
        return None
    sources = [OwnKeys(environment, environment.get("HOME")), MachineRole(Metadata(environment), clock)]
    return ecr.ask_for_login(registry, Keyring(sources, clock.wall_ms).get, environment, clock)


def registry_of(image: str) -> Optional[str]:
    """Returns the host of the registry; None for Docker Hub, whose image names contain no host."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else None

