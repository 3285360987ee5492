"""Starts the runner of one attempt on this machine, as a separate unit. Running it again, or twice at once, is harmless.

Sent through the provider's agent with `SPEC` in front (the specification, as JSON), with runner/launching.py and local_disks.py. The exit code says
which side failed.
"""

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.request

UNFIT, UNFETCHED, DAMAGED, UNSTARTED, UNSEALED, UNUSABLE, REFUSED, ENDED = 10, 11, 12, 13, 14, 15, 16, 17
FETCH_TRIES = 3
# A signed URL that has expired, an absent object, revoked keys: asking again changes nothing.
FINAL = (400, 401, 403, 404, 410)
# The group of 2048 bits of RFC 3526.
PRIME = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F"
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B"
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
    "15728E5A8AACAA68FFFFFFFFFFFFFFFF",
    16,
)


def main(spec):
    if sys.version_info < (3, 8):
        return fail(UNFIT, "the runner needs Python 3.8 or newer, and this is %d.%d" % sys.version_info[:2])
    root = os.path.join(os.environ.get("STATE_DIRECTORY") or "/var/lib/crucible", spec["attemptId"])
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        with open(os.path.join(root, "start.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if spec["do"] == "prepare":
                print(public_number(os.path.join(root, "exchange")))
                return 0
            return start(spec, root)
    except OSError as error:
        return fail(UNUSABLE, "%s: %s" % (error.filename or root, error.strerror))


def start(spec, root):
    if is_at_work():
        print("the runner is already running")
        return 0
    program = os.path.join(root, "crucible-runner.pyz")
    if spec.get("seal") is not None:
        key = os.path.join(root, "secret.key")
        if not os.path.exists(key) and not unseal(spec["seal"], os.path.join(root, "exchange"), key):
            return fail(UNSEALED, "the secret key cannot be opened on this machine")
    if digest_of(program) != spec["runnerSha256"]:
        error, is_final = fetch(spec["runnerUrl"], program)
        if error is not None:
            return fail(REFUSED if is_final else UNFETCHED, "the runner program cannot be downloaded: %s" % error)
        if digest_of(program) != spec["runnerSha256"]:
            return fail(DAMAGED, "the downloaded file is not the order's runner program")
    if spec.get("grant") is not None:
        # The grant is sealed with the attempt's key.
        write(os.path.join(root, "grant.json"), spec["grant"].encode("ascii"))
    # The runner claims the attempt with this name.
    write(os.path.join(root, "machine-id"), spec["machineId"].encode("ascii") + b"\n")
    remark = use_local_disks(os.path.dirname(root), passed_environment(spec)["HOME"], spec.get("hasImage", False))
    if remark is not None:
        # The runner passes it on to the attempt's log.
        write(os.path.join(root, "remarks"), remark.encode("utf-8") + b"\n")
    error = start_runner_unit(spec, root, runner_command(spec, root))
    if error is not None:
        return fail(UNSTARTED, error)
    error = why_not_begun(root, is_at_work)
    if error is not None:
        return fail(ENDED, error)
    print("the runner was started")
    return 0


def fetch(url, path):
    """Returns the reason for a failure, or None, and whether another try is in vain."""
    error = None
    for tries in range(FETCH_TRIES):
        time.sleep(tries)
        try:
            with urllib.request.urlopen(url, timeout=30) as source:
                body = source.read()
            break
        except urllib.error.HTTPError as reason:
            if reason.code in FINAL:
                return "HTTP %d" % reason.code, True
            error = "HTTP %d" % reason.code
        except (OSError, ValueError) as reason:
            # A URL may carry a signature, so only the error is logged.
            error = str(reason).replace(url, "its address")
    else:
        return error, False
    write(path, body)
    return None, False


def public_number(path):
    """Half of a secret shared with the caller: the log of commands alone opens nothing."""
    if not os.path.exists(path):
        write(path, b"%x" % secrets.randbits(512))
    return "%x" % pow(2, secret_number(path), PRIME)


def secret_number(path):
    with open(path) as file:
        return int(file.read(), 16)


def unseal(seal, exchange, path):
    try:
        shared = pow(int(seal["public"], 16), secret_number(exchange), PRIME)
    except FileNotFoundError:
        return False
    key = hashlib.sha256(shared.to_bytes(256, "big")).digest()
    text = bytes.fromhex(seal["text"])
    tag = hmac.new(key, b"authenticate" + text, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(tag, seal["tag"]):
        return False
    pad = hmac.new(key, b"encrypt", hashlib.sha256).digest()
    write(path, bytes(a ^ b for a, b in zip(text, pad)).hex().encode("ascii") + b"\n")
    os.remove(exchange)
    return True


def fail(code, words):
    print(words, file=sys.stderr)
    return code


sys.exit(main(json.loads(SPEC)))  # noqa: F821
