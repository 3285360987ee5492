#!/usr/bin/env python3
"""Stands in for docker: a container is a session of its own whose processes have no parent. What it was called
with goes to $FAKE_DOCKER/calls."""

import json
import os
import signal
import subprocess
import sys
import time

HOME = os.environ["FAKE_DOCKER"]


def main(arguments):
    with open(os.path.join(HOME, "calls"), "a") as file:
        file.write(json.dumps(arguments) + "\n")
    with open(os.path.join(HOME, "variables"), "a") as file:
        file.write("\n".join(os.environ) + "\n")
    command = arguments[0]
    while command in ("exec", "rm") and os.path.exists(os.path.join(HOME, "hung")):
        time.sleep(0.1)
    if command == "login":
        return login(arguments)
    if command == "pull":
        return pull(arguments[-1])
    if command == "image":
        return 1
    if command == "run":
        return run(arguments)
    if command == "exec":
        # The init that --init puts in front is not there: all of them hear the signal.
        for pid in members(arguments[1]):
            os.kill(pid, signal.SIGTERM)
        return 0
    if command == "rm":
        for pid in members(arguments[2]):
            os.kill(pid, signal.SIGKILL)
        return 0
    return 125


def config():
    return os.path.join(os.environ.get("DOCKER_CONFIG", HOME), "config.json")


def login(arguments):
    if sys.stdin.read() != "let me in":
        sys.stderr.write("Error response from daemon: unauthorized: incorrect username or password\n")
        return 1
    with open(config(), "w") as file:
        json.dump({"user": arguments[arguments.index("--username") + 1], "registry": arguments[-1]}, file)
    return 0


def pull(image):
    def fail(words):
        sys.stderr.write("Error response from daemon: %s\n" % words)
        return 1

    if "missing" in image:
        return fail("manifest unknown")
    if "hung" in image:
        # The service of this engine does not answer, and a child keeps the output open.
        return subprocess.call(["sleep", "600"])
    if image.startswith("private.example/"):
        try:
            with open(config()) as file:
                assert json.load(file) == {"user": "robot", "registry": "private.example"}
        except FileNotFoundError:
            return fail("pull access denied for %s: denied: requested access to the resource is denied" % image)
    if "shaky" in image and not os.path.exists(os.path.join(HOME, "shaken")):
        open(os.path.join(HOME, "shaken"), "w").close()
        print("0123456789ab: Pull complete", flush=True)
        return fail("received unexpected HTTP status: 503 Service Unavailable")
    print("0123456789ab: Already exists\nDigest: sha256:" + "7" * 64)
    return 0


def run(arguments):
    def value(option):
        return arguments[arguments.index(option) + 1]

    if "no-init" in arguments:
        sys.stderr.write("Error: container-init binary not found on the host: stat /usr/libexec/podman/catatonit: no such file or directory\n")
        return 125
    if "no-shell" in arguments:
        sys.stderr.write("docker: Error response from daemon: exec: \"sh\": executable file not found in $PATH.\n\nRun 'docker run --help'\n")
        return 127
    names = [arguments[at + 1] for at, word in enumerate(arguments) if word == "--env"]
    environment = {"PATH": os.environ["PATH"]}
    environment.update((name, os.environ[name]) for name in names)
    # The first process of a container cannot be found from outside by its environment.
    marks = environment.pop("CRUCIBLE_MACHINE")
    at = arguments.index("-c")
    # Every process but its own, in the words of a session instead of a container.
    script = arguments[at + 1].replace("kill -0 -1 2>/dev/null", "pgrep -s 0 python >/dev/null")
    process = subprocess.Popen(
        ["sh", "-c", script] + arguments[at + 2 :],
        cwd=value("--workdir"),
        env=dict(environment, MARKS=marks),
        start_new_session=True,
    )
    with open(os.path.join(HOME, value("--name")), "w") as file:
        file.write(str(process.pid))
    # As docker's own client does: the container keeps running when this is killed.
    status = process.wait()
    return status if status >= 0 else 128 - status


def members(name):
    """The container's processes, the first one first."""
    try:
        with open(os.path.join(HOME, name)) as file:
            session = int(file.read())
    except FileNotFoundError:
        return []
    found = subprocess.run(["ps", "-o", "pid=", "-s", str(session)], stdout=subprocess.PIPE).stdout.split()
    return sorted(int(pid) for pid in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
