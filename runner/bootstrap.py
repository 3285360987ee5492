"""Takes the runner of one attempt from its hand-over and starts it (docs/decisions/0041-hand-over.md).

Its parameters are one JSON object: in the file that the argument names, or in Base64 in CRUCIBLE_BOOTSTRAP. The program itself has no
secrets. backends/bootstrap.ts puts launching.py and crucible_runner/sealing.py in front of it.
"""

import base64
import fcntl
import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

PARAMETERS = "CRUCIBLE_BOOTSTRAP"
TIMER_UNIT = "crucible-dead-man"
GIVE_UP_SECONDS = 900
DELETE_SECONDS = 60
LAST_WORDS_SECONDS = 60
PAUSE_SECONDS_MAX = 15
METADATA_TRIES = 5
# A signed URL that has expired, an absent object, revoked keys: asking again changes nothing.
FINAL = (400, 401, 403, 404, 410)


# Says why nothing is started here.
class Stop(Exception):
    pass


def main(arguments):
    spec = read_parameters(arguments)
    # A container's first process ignores the signal otherwise.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGALRM, give_up)
    try:
        return start(spec)
    except Stop as stop:
        reason = str(stop)
    except Exception as error:
        # Other texts of an error may contain a URL.
        reason = getattr(error, "strerror", None) or type(error).__name__
    signal.alarm(0)
    say("no runner was started: %s" % reason)
    leave_last_words(spec, reason)
    if spec["powerOff"]:
        subprocess.call(["sh", "-c", POWER_OFF])
    return 1


def leave_last_words(spec, reason):
    """Puts the reason into the store, where the watch reads it: providers may neither show it nor notice that the machine does nothing."""
    url, body = spec.get("lastWordsUrl"), reason[-LAST_WORDS_CHARS:].encode("utf-8")
    if url is None:
        return
    signal.alarm(LAST_WORDS_SECONDS)
    try:
        if url.startswith("file:"):
            write(urllib.request.url2pathname(url[5:]), body)
        else:
            fetch(url, "PUT", body)
    except Exception:
        pass  # nothing is left to report it to
    finally:
        signal.alarm(0)


def read_parameters(arguments):
    if len(arguments) > 1:
        with open(arguments[1]) as file:
            return json.load(file)
    return json.loads(base64.b64decode(os.environ.pop(PARAMETERS)).decode("utf-8"))


def start(spec):
    if sys.version_info < (3, 8):
        raise Stop("the runner needs Python 3.8 or newer, and this is %d.%d" % sys.version_info[:2])
    root = spec["root"]
    os.makedirs(root, mode=0o700, exist_ok=True)
    with open(os.path.join(root, "bootstrap.lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another bootstrap is already running here")
            return 0
        if spec["isService"] and is_at_work():
            say("the runner is already running")
            return 0
        told = read_told(root)
        # A limit of 0 seconds would mean no limit.
        limit = max(1, min(spec.get("giveUpSeconds", GIVE_UP_SECONDS), GIVE_UP_SECONDS))
        if told is None:
            signal.alarm(limit)
            told = take(spec, root)
            signal.alarm(0)
        told = dispose(told, root, min(limit, DELETE_SECONDS))
        return launch_service(spec, told, root) if spec["isService"] else launch_here(told, root)


def read_told(root):
    """The hand-over that an earlier bootstrap wrote to disk completely; otherwise None."""
    try:
        with open(os.path.join(root, "hand-over.json")) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def take(spec, root):
    """Writes everything that the runner needs, the note of it last: a bootstrap that dies before finds the document again."""
    body = fetch(spec["url"])
    if body is None:
        raise Stop("the hand-over was already read, or has expired")
    try:
        values = json.loads(open_sealed(json.loads(body.decode("utf-8")), bytes.fromhex(spec["key"])).decode("utf-8"))
        told = json.loads(values["handOver"])
        if told["attemptId"] != spec["attemptId"]:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise Stop("the hand-over was modified or belongs to another attempt")
    program = os.path.join(root, "crucible-runner.pyz")
    url, key, grant = (told.pop(name) for name in ("runnerUrl", "key", "grant"))
    if digest_of(program) != told["runnerSha256"]:
        body = fetch(url)
        if body is None:
            raise Stop("the runner is not in the store, or its URL has expired")
        if hashlib.sha256(body).hexdigest() != told["runnerSha256"]:
            raise Stop("the downloaded file is not the runner of the order")
        write(program, body)
    machine = machine_id(spec["machineId"])
    texts = {"secret.key": key, "grant.json": grant, "machine-id": machine, "send-name": spec["send"]}
    # For a runner that the store refuses.
    texts["last-words-url"] = spec.get("lastWordsUrl")
    for name, text in texts.items():
        if text is not None:
            write(os.path.join(root, name), text.strip().encode("utf-8") + b"\n")
    return note(told, root)


def note(told, root):
    write(os.path.join(root, "hand-over.json"), json.dumps(told).encode("utf-8"))
    return told


def dispose(told, root, limit):
    """Deletes the document. A runner is not kept waiting for a store that does not answer: the settlement deletes it, too."""
    url = told.get("deleteUrl")
    if url is None:
        return told
    signal.alarm(limit)
    try:
        fetch(url, "DELETE")
    except Stop:
        say("the hand-over could not be deleted yet")
        return told
    finally:
        signal.alarm(0)
    return note({name: value for name, value in told.items() if name != "deleteUrl"}, root)


def fetch(url, method="GET", data=None):
    """Returns the body, or None if the object no longer exists. Repeats until the alarm."""
    pause, known = 0.5, None
    while True:
        try:
            if method == "DELETE" and url.startswith("file:"):
                return os.remove(urllib.request.url2pathname(url[5:]))
            request = urllib.request.Request(url, data, {"User-Agent": "crucible-runner"}, method=method)
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            trouble = "HTTP %d" % error.code
            if error.code in FINAL:
                return None
        except (OSError, http.client.HTTPException) as error:
            cause = getattr(error, "reason", error)
            if isinstance(cause, FileNotFoundError):
                return None  # a store in a folder
            trouble = getattr(cause, "strerror", None) or type(cause).__name__
        if trouble != known:
            say("the store does not answer (%s): trying again" % trouble)
        known = trouble
        time.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)


def give_up(*_):
    raise Stop("the store did not answer in time")


def machine_id(source):
    """Returns the provider's id of this machine; None if it cannot be learnt."""
    text, tries = None, METADATA_TRIES if "url" in (source or {}) else 1
    for pause in range(tries if source else 0):
        time.sleep(pause)
        try:
            text = read_machine_id(source)
            break
        except (OSError, ValueError, LookupError, TypeError):
            continue  # a metadata service comes up with the network
    return text if text and all("!" <= each <= "~" for each in text) and len(text) <= 255 else None


def read_machine_id(source):
    if "literal" in source:
        return source["literal"]
    if "variable" in source:
        return os.environ[source["variable"]]
    if "file" in source:
        with open(source["file"]) as file:
            return file.read().strip()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(source["url"], headers=source.get("headers", {})), timeout=5) as answer:
        value = answer.read().decode("utf-8")
    if "path" in source:
        value = json.loads(value)
        for part in source["path"]:
            value = value[part]
    return str(value).strip()


def launch_here(told, root):
    """Becomes the runner: signals to this process are signals to it."""
    home = os.path.expanduser("~")
    environment = dict({"HOME": home if os.path.isabs(home) else root}, **os.environ)
    environment.update(told.get("environment", {}))
    command = runner_command(told, root, False, sys.executable)
    os.chdir(root)
    os.execve(command[0], command, environment)


def launch_service(spec, told, root):
    """Starts the runner, and the timer that powers the machine off without it, as units, or without systemd as processes of their own.
    Raises `Stop` if the runner ends before it has begun."""
    command = runner_command(told, root, spec["powerOff"])
    timer = ["python3", "-IS", os.path.join(root, "crucible-runner.pyz"), "machine-timer", os.path.dirname(root)]
    timer += ["%d" % told[name] for name in ("startMs", "endMs")]
    if spec["powerOff"]:
        again = ["Restart=always", "RestartSec=10"]
        if start_unit(TIMER_UNIT, again, passed_environment({}), timer) is not None:
            detach({}, timer, root)
    error, is_alive = start_runner_unit(told, root, command), is_at_work
    if error is not None:
        say("%s: starting the runner without it" % error)
        process = detach(told, command, root)
        is_alive = lambda: process.poll() is None
    error = why_not_begun(root, is_alive)
    if error is not None:
        raise Stop(error)
    say("the runner was started")
    return 0


def detach(told, command, root):
    with open(os.path.join(root, "bootstrap.log"), "ab") as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        return subprocess.Popen(command, env=passed_environment(told), cwd=root, start_new_session=True, **streams)


if __name__ == "__main__":
    try:
        code = main(sys.argv)
    except Exception as error:
        # The start script reports other ends than 0 and 1.
        say("no runner was started: %s" % type(error).__name__)
        code = 2
    sys.exit(code)
