"""The least that a runner does for its machine: it takes the lock and runs the workload, hiding nothing from it."""
import argparse
import fcntl
import json
import os
import subprocess
import sys
from urllib.parse import unquote, urlparse

parser = argparse.ArgumentParser()
parser.add_argument("command")
for name in ("store", "job", "attempt", "root"):
    parser.add_argument("--" + name)
options, _ = parser.parse_known_args()

lock = open(os.path.join(options.root, "runner.lock"), "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit(0)

store = unquote(urlparse(options.store).path)
with open(os.path.join(store, "jobs", options.job, "attempts", options.attempt, "order.json")) as file:
    order = json.load(file)
work = os.path.join(options.root, "work")
os.makedirs(work, exist_ok=True)
sys.exit(subprocess.call(["sh", "-c", order["run"]], cwd=work))
