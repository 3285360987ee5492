"""Shared by the programs that start a runner on a machine. `readRunnerProgram` of backends/bootstrap.ts puts it in front of them."""

import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
import time

RUNNER_UNIT = "crucible-runner"
POWER_OFF = "shutdown -h now"
# Written by the runner once it has its order.
BEGUN = "runner.json"
# A runner that never begins leaves its starter this time to report why, before the machine is off.
REPORT_SECONDS = 5
# Longer than a runner waits for a store that refuses it.
BEGINS_WITHIN_SECONDS = 45
LAST_WORDS_CHARS = 500
# Variables of the machine that the runner needs to reach the store and the metadata; the workload gets none of them.
PASSED = ("PATH", "HOME", "LANG", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_EC2_METADATA_SERVICE_ENDPOINT")
PASSED += ("AWS_CA_BUNDLE", "SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def is_at_work():
    """Whether the runner's unit is active; False without systemd."""
    try:
        return subprocess.call(["systemctl", "is-active", "--quiet", RUNNER_UNIT], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def runner_command(spec, root, is_powered_off=True, python="python3"):
    """The runner's command line for `spec` (store, job, attempt), with the key and the grant that are in `root`."""
    command = [python, "-IS", os.path.join(root, "crucible-runner.pyz"), "run", "--store", spec["storeUrl"]]
    command += ["--job", spec["jobId"], "--attempt", str(spec["attempt"]), "--root", root]
    command += ["--job-root", job_root(root, spec["jobId"])]
    if is_powered_off:
        begun = shlex.quote(os.path.join(root, BEGUN))
        command += ["--power-off", "test -e %s || sleep %d; %s" % (begun, REPORT_SECONDS, POWER_OFF)]
    for option, name in (("--secret-key-file", "secret.key"), ("--grant-file", "grant.json")):
        if os.path.exists(os.path.join(root, name)):
            command += [option, os.path.join(root, name)]
    return command


def job_root(root, job_id):
    """The job's directory. Its path is short, for Unix sockets, the same for all attempts on all machines, and without links, as programs see it."""
    name = "%s-%s" % (job_id[:8].strip("-"), hashlib.sha256(job_id.encode("utf-8")).hexdigest()[:8])
    return os.path.join(os.path.realpath(os.path.join(os.path.dirname(root), "jobs")), name)


def passed_environment(spec):
    environment = {name: os.environ[name] for name in PASSED if os.environ.get(name)}
    environment.setdefault("HOME", "/root")
    environment.update(spec.get("environment", {}))
    return environment


def start_runner_unit(spec, root, command):
    """Returns why the runner does not run as a unit, or None."""
    properties = [
        # When the machine shuts down, its runner gets a signal and saves; then its other processes end.
        "KillMode=mixed",
        "TimeoutStopSec=%d" % spec["stopSeconds"],
        # The provider's console, which outlives the machine, gets the runner's last words.
        "StandardError=journal+console",
        # A workload that runs out of memory ends alone: the runner has to report it.
        "OOMPolicy=continue",
        "LimitNOFILE=1048576",
        "LimitMEMLOCK=infinity",
        "TasksMax=infinity",
    ]
    return start_unit(RUNNER_UNIT, properties, passed_environment(spec), ["--working-directory=" + root] + command)


def start_unit(name, properties, environment, command):
    """Returns why not, or None."""
    arguments = ["systemd-run", "--unit=" + name, "--collect"]
    arguments += ["--property=" + each for each in properties]
    arguments += ["--setenv=%s=%s" % pair for pair in sorted(environment.items())]
    try:
        done = subprocess.run(arguments + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        return "systemd-run: %s" % error.strerror
    return None if done.returncode == 0 else "systemd-run: %s" % done.stdout.decode("utf-8", "replace").strip()


def why_not_begun(root, is_alive):
    """Waits until a started runner has its order. Returns None then, or if it is still waiting; otherwise its last words."""
    until, pause = time.monotonic() + BEGINS_WITHIN_SECONDS, 0.1
    while time.monotonic() < until:
        was_alive = is_alive()
        if os.path.exists(os.path.join(root, BEGUN)):
            return None
        if not was_alive:
            return "the runner ended at once: %s" % (last_words(root) or "it printed nothing")
        time.sleep(pause)
        pause = min(1, 2 * pause)
    return None


def last_words(root):
    """The last line that the runner printed, or None."""
    journal = ["journalctl", "--no-pager", "-b", "-o", "cat", "-n", "20", "-u", RUNNER_UNIT]
    texts = []
    for name in ("runner.log", "bootstrap.log"):
        try:
            with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
                texts.append(file.read()[-4096:])
        except OSError:
            pass  # it did not come so far
    try:
        done = subprocess.run(journal, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=5)
        # systemd's own lines about the unit follow those of the program.
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        texts.append("\n".join(line for line in lines if RUNNER_UNIT not in line and not line.startswith("-- ")))
    except (OSError, subprocess.TimeoutExpired):
        pass  # without systemd
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    return lines[-1][-LAST_WORDS_CHARS:] if lines else None


def digest_of(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except FileNotFoundError:
        return None


def write(path, body, mode=0o600):
    """Whole or not at all, also after a power failure."""
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(body)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.remove(temporary)
        raise


def say(words):
    sys.stderr.write("crucible: %s\n" % words)
    sys.stderr.flush()
