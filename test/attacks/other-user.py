"""Looks through the host as another user, at what the test has found of a deployment. Reads one JSON object; prints what gave way."""

import http.client
import json
import os
import resource
import socket
import sys

given = json.load(sys.stdin)
found = []


def gives_way(what, act):
    try:
        if act() is not False:
            found.append(what)
    except (OSError, http.client.HTTPException):
        pass


def has_secret(text):
    for name, secret in given["secrets"].items():
        if secret.encode() in text:
            found.append("%s is shown" % name)
    return False


def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 20)


def look_at_process(pid):
    place = "/proc/%d" % pid
    gives_way("%d: signal" % pid, lambda: os.kill(pid, 0))
    gives_way("%d: priority" % pid, lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    gives_way("%d: affinity" % pid, lambda: os.sched_setaffinity(pid, [0]))
    gives_way("%d: limits" % pid, lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, 8)))
    for name in ("environ", "maps", "auxv", "io", "stack", "syscall"):
        gives_way("%d: %s" % (pid, name), lambda: len(read(os.path.join(place, name))) > 0)
    gives_way("%d: mem" % pid, lambda: os.close(os.open(place + "/mem", os.O_RDWR)))
    for name in ("cwd", "root", "exe"):
        gives_way("%d: %s" % (pid, name), lambda: bool(os.readlink(os.path.join(place, name))))
    gives_way("%d: fd" % pid, lambda: bool(os.listdir(place + "/fd")))


def look_at_file(path):
    if os.path.isdir(path):
        gives_way("%s: names" % path, lambda: os.listdir(path) is not None)
        gives_way("%s: a new file" % path, lambda: os.close(os.open(path + "/stranger", os.O_CREAT | os.O_WRONLY)))
    else:
        gives_way("%s: content" % path, lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)))
        gives_way("%s: change" % path, lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)))
        gives_way("%s: connection" % path, lambda: socket.socket(socket.AF_UNIX).connect(path))


ASKS = [
    ("GET", "/", {}),
    ("GET", "/", {"host": "evil.example", "origin": "https://evil.example"}),
    ("PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}),
    ("GET", "/latest/user-data", {}),
    ("GET", "/_sim/journal", {}),
    ("GET", "/_sim/journal", {"authorization": "Bearer test"}),
    ("POST", "/_sim/faults", {"content-type": "application/json"}),
    ("GET", "/_modal/v1/health", {}),
    ("GET", "/_modal/v1/health", {"modal-key": "wk-test", "modal-secret": "ws-test"}),
    ("GET", "/_modal/%63ontrol/secrets", {"user-agent": "modal-control-plane"}),
    ("GET", "/_lambda/api/v1/instances", {"authorization": "Bearer secret_small-cloud_0123456789abcdef"}),
    ("GET", "/crucible?list-type=2", {}),
    ("PUT", "/crucible/stranger", {"authorization": "AWS4-HMAC-SHA256 Credential=test/20270101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"}),
]


def ask(host, port, method, path, headers):
    connection = http.client.HTTPConnection(host, port, timeout=3)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    has_secret(answer.read(1 << 20))
    return answer.status < 400


for name in os.listdir("/proc"):
    if name.isdigit():
        gives_way("/proc/%s" % name, lambda: has_secret(read("/proc/%s/cmdline" % name)))
for pid in given["pids"]:
    look_at_process(pid)
for path in given["files"]:
    look_at_file(path)
for name in given["abstract"]:
    gives_way("@%s: connection" % name, lambda: socket.socket(socket.AF_UNIX).connect("\0" + name))
for host, port in given["ports"]:
    for method, path, headers in ASKS:
        gives_way("port %d: %s %s" % (port, method, path), lambda: ask(host, port, method, path, headers))
print(json.dumps(sorted(set(found))))
