"""A folder with all that a tree can have: empty folders, a link to one, hard links, permissions, times, and a name that is not UTF-8."""

import os
import pickle
import stat

import lab

STATE = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "state")
MODEL, TWIN, SCRIPT = (os.path.join(STATE, name) for name in ("model.bin", "twin.bin", "run.sh"))
LONG_AGO_NS = 1_600_000_000_123_456_789


def make():
    os.makedirs(os.path.join(STATE, "rejected", "deep"))
    os.makedirs(os.path.join(STATE, "tb"))
    os.symlink("tb", os.path.join(STATE, "logs"))
    with open(SCRIPT, "w") as file:
        file.write("exit 0\n")
    os.chmod(SCRIPT, 0o550)
    os.utime(SCRIPT, ns=(LONG_AGO_NS, LONG_AGO_NS))
    open(os.path.join(os.fsencode(STATE), b"caf\xe9.txt"), "wb").close()


def check():
    assert os.listdir(os.path.join(STATE, "rejected", "deep")) == [], "the empty folder is gone"
    assert os.readlink(os.path.join(STATE, "logs")) == "tb" and os.path.isdir(os.path.join(STATE, "logs"))
    status = os.stat(SCRIPT)
    assert (stat.S_IMODE(status.st_mode), status.st_mtime_ns) == (0o550, LONG_AGO_NS), status
    assert os.path.samefile(MODEL, TWIN), "one file became two"


def save(step, files):
    with open(MODEL + ".tmp", "wb") as file:
        pickle.dump(lab.state_at(step), file)
    if os.path.exists(TWIN):
        os.unlink(TWIN)
    os.link(MODEL + ".tmp", TWIN)
    os.replace(MODEL + ".tmp", MODEL)
    files += [MODEL]


if os.path.exists(MODEL):
    check()
    with open(MODEL, "rb") as file:
        start = lab.go_on(pickle.load(file))
else:
    make()
    start = 0
for step in lab.train(start):
    print("step %d loss %.4f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            save(step, files)
