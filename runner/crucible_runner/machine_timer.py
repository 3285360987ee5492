"""Powers the machine off when its time is over, even if other processes still run.

Until a runner has started, that is the time within which it may start. Afterwards it is the end of its lease plus the time for saving and
powering off, or the hard stop if that comes first, which already includes that time. The runner notes both in `runner.json`, by the clock
that counts from this machine's boot. It obeys them itself; this program is for a machine whose runner no longer can.

Imports nothing else of the runner: a backend whose machines get their runner later puts this file into their user data.
"""

import glob
import json
import os
import subprocess
import sys
import time
import urllib.request

ENDPOINT = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
# Limits if the machine's own tags cannot be read: an hour to start, ten minutes to end.
TIMER = (3600000, 600000)
LOOK_SECONDS = 1
# A power-off without effect is requested again.
AGAIN_SECONDS = 60


def now_ms():
    clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    return time.monotonic_ns() // 1000000 if clock is None else time.clock_gettime_ns(clock) // 1000000


def metadata(path):
    ask = urllib.request.Request(ENDPOINT + "/latest/api/token", method="PUT")
    ask.add_header("X-aws-ec2-metadata-token-ttl-seconds", "60")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(ask, timeout=5) as answer:
        token = answer.read().decode("ascii")
    ask = urllib.request.Request(ENDPOINT + "/latest/meta-data/" + path, headers={"X-aws-ec2-metadata-token": token})
    with opener.open(ask, timeout=5) as answer:
        return answer.read().decode("utf-8")


def read_timer():
    """How long a runner has to start, and how long the machine may stay on after the end of its lease."""
    start, end = metadata("tags/instance/crucible:timer").split()
    return int(start), int(end)


def boot_id():
    """Returns an id of the machine's current boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def in_this_boot(told, boot, mono_ms, wall_ms):
    """The runner's note, with its instants converted to the current boot's clock; those of an earlier boot by the wall clock."""
    if told["boot"] == boot and told["monoMs"] <= mono_ms:
        return told
    shift_ms = mono_ms - max(0, wall_ms - told["wallMs"]) - told["monoMs"]
    moved = dict(told)
    for name in ("leaseUntilMs", "hardStopMs"):
        if told.get(name) is not None:
            moved[name] = told[name] + shift_ms
    return moved


def read_runner(root):
    """The runner's last note, or None before it has started."""
    newest = None
    for path in glob.glob(os.path.join(glob.escape(root), "*", "runner.json")):
        try:
            with open(path, encoding="utf-8") as file:
                told = json.load(file)
            if newest is None or told["wallMs"] > newest["wallMs"]:
                newest = told
        except (OSError, ValueError, KeyError):
            pass  # half written, or removed with its directory
    return newest and in_this_boot(newest, boot_id(), now_ms(), time.time_ns() // 1000000)


def end_ms(began_ms, timer, told):
    """When the machine must be off, by the clock that counts from its boot."""
    if told is None:
        return began_ms + timer[0]
    lease_ms, stop_ms = told.get("leaseUntilMs"), told.get("hardStopMs")
    ends = [] if lease_ms is None else [lease_ms + timer[1]]
    return min(ends + ([] if stop_ms is None else [stop_ms]), default=began_ms + timer[0])


def main(root, *told):
    """`told` has both times in milliseconds; without it a tag of the machine has them."""
    began_ms, timer = now_ms(), tuple(int(each) for each in told) or None
    while True:
        if timer is None:
            try:
                timer = read_timer()
            except (OSError, ValueError):
                pass  # the metadata service starts with the network
        if now_ms() >= end_ms(began_ms, timer or TIMER, read_runner(root)):
            print("crucible: this machine's time is up", file=sys.stderr, flush=True)
            subprocess.call(["shutdown", "-h", "now"])
            time.sleep(AGAIN_SECONDS)
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
