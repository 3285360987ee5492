"""Does everything at once that a hostile job can: in each folder that the runner reads, to its neighbours' documents, with processes and with
its output. Each deed is bounded. What it got is written to the file that
its argument names, as a list. It then waits, and ignores signals."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

FOLDERS = [os.environ["CRUCIBLE_OUTPUT_DIR"], os.environ["CRUCIBLE_CHECKPOINT_DIR"], os.environ["CRUCIBLE_CONTROL_DIR"], os.getcwd()]
NAMES = [b"new\nline", b"\x1b[2J\x1b]0;x\x07", b"a" * 255, b"\xff\xfe\x80", b"...", b"..\xc0\xaf..\xc0\xafetc", b"-rf", b" ", "\u202ecod".encode(), b"$(id)"]
TARGETS = ["/etc/shadow", "/dev/zero", "/proc/self/mem", "..", ".", "/", "/dev/tty", "/proc/1/environ", "nowhere"]
SPARSE_BYTES = 1 << 40
FILES = 10_000
FORKS = 200
LOG_BYTES = 200_000_000
succeeded = []


def attempt(what, deed, *arguments):
    """A deed that must not succeed is named."""
    try:
        deed(*arguments)
        if what is not None:
            succeeded.append(what)
    except (OSError, ValueError):
        pass


def write(path, body):
    with open(path, "wb") as file:
        file.write(body)


def litter(folder):
    base = os.fsencode(folder)
    for index, target in enumerate(TARGETS):
        attempt(None, os.symlink, target, os.path.join(base, b"link-%d" % index))
    for name in NAMES:
        attempt(None, write, os.path.join(base, name), b"x")
        attempt(None, os.mkdir, os.path.join(base, b"d" + name[:200]))
        attempt(None, write, os.path.join(base, b"d" + name[:200], b"model.bin"), b"x" * 1000)
    for name in (b"pipe", b"manifest.json", b"checkpoint-9"):
        attempt(None, os.mkfifo, os.path.join(base, name))
    for kind in (stat.S_IFCHR, stat.S_IFBLK):
        attempt("a device", os.mknod, os.path.join(base, b"device-%d" % kind), 0o666 | kind, os.makedev(1, 5))
    attempt(None, lambda: socket.socket(socket.AF_UNIX).bind(os.path.join(folder, "socket")))
    attempt(None, os.link, os.path.join(base, b" "), os.path.join(base, b"hard"))
    with open(os.path.join(folder, "sparse"), "wb") as file:
        file.truncate(SPARSE_BYTES)
    for name in ("result.json", "beat.json", "drain.json", "lease.json", "order.json", "claim.json"):
        attempt(None, write, os.path.join(folder, name), b'{"attemptId": "neighbour-1", "state": "succeeded", "seq": 1e999}')
    deep = base
    for _ in range(15):
        deep = os.path.join(deep, b"deep" * 50)
        attempt(None, os.mkdir, deep)


def many(folder):
    os.makedirs(os.path.join(folder, "many"))
    for index in range(FILES):
        write(os.path.join(folder, "many", "%d" % index), b"x")


def churn(folder, stop):
    """A checkpoint and an artifact that change while they are read: folders become links and back."""
    count = 0
    while not stop.is_set():
        count += 1
        path = os.path.join(folder, "checkpoint-%d" % (count % 20))
        attempt(None, os.rename, path, path + ".old%d" % count)
        attempt(None, os.symlink, "/etc", path)
        time.sleep(0.01)
        attempt(None, os.unlink, path)
        attempt(None, os.mkdir, path)
        attempt(None, write, os.path.join(path, "model.bin"), os.urandom(10_000))
        attempt(None, os.truncate, os.path.join(path, "model.bin"), count % 10_000)
        time.sleep(0.02)


def arguments_of_neighbours():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    yield int(name), file.read().decode("utf-8", "replace").split("\0")
            except OSError:
                pass


def forge():
    """Documents of this job and its neighbour in the store, keys, and processes."""
    for pid, words in list(arguments_of_neighbours()):
        if "--store" not in words:
            continue
        store = words[words.index("--store") + 1].replace("file://", "")
        job = words[words.index("--job") + 1]
        for name in ("result.json", "beat.json", "drain.json", "lease.json", "order.json"):
            path = os.path.join(store, "jobs", job, "attempts", "1", name)
            attempt("a document of %s" % job, write, path, b"{}")
        for option in ("--secret-key-file", "--grant-file"):
            if option in words:
                attempt("the key of %s" % job, lambda: open(words[words.index(option) + 1]).read())
        attempt("the environment of %s" % job, lambda: open("/proc/%d/environ" % pid).read())
        for number in (signal.SIGSTOP, signal.SIGKILL):
            attempt("a signal to %s" % job, os.kill, pid, number)


def daemons():
    """Processes that no parent, session or variable leads to; they ignore every signal that can be ignored."""
    ignoring = "import signal,time\nfor n in (1,2,3,13,15,10,12): signal.signal(n, signal.SIG_IGN)\ntime.sleep(600)"
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.chdir("/")
                os.execve(sys.executable, [sys.executable, "-c", ignoring], {})
            os._exit(0)


def storm():
    children = [subprocess.Popen(["sleep", "600"], env={}, start_new_session=True) for _ in range(FORKS)]
    return len(children)


def shout():
    line = b"x" * 10_000_000 + b"\n"
    pieces = [line, os.urandom(1_000_000), b"\r step 1/2 |###" * 50_000, b"\x1b[31m\x1b]8;;http://x\x07" * 20_000, b"\n" * 500_000]
    written = 0
    while written < LOG_BYTES:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(1 + written % 2, rest) :]
            written += len(piece)


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
for each in FOLDERS:
    litter(each)
many(FOLDERS[0])
many(FOLDERS[1])
stop = threading.Event()
for each in FOLDERS[:2]:
    threading.Thread(target=churn, args=(each, stop), daemon=True).start()
forge()
daemons()
storm()
shout()
with open(sys.argv[1] + ".part", "w") as file:
    json.dump(succeeded, file)
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
