"""`mdadm`, `mkfs.ext4` and `mount` for the local disks of a machine, which are folders. They know the options of real use and refuse others."""

import os
import sys

CONTENT = "/run/local-disks"
DEVICES = "/sys/block"
ARRAY = "/dev/md/"


def main(programs, name, arguments):
    if name == "mdadm":
        return stripe(arguments)
    if name == "mkfs.ext4":
        return make_file_system(arguments)
    device = arguments[-2] if len(arguments) > 1 else ""
    if not device.startswith("/dev/") or is_other(device):
        os.execv(os.path.join(programs, "mount"), ["mount", *arguments])
    if arguments[:-2] not in ([], ["-o", "noatime"]):
        return refuse("mount: unknown options: %s" % " ".join(arguments[:-2]))
    if not os.path.isdir(content_of(device)):
        return refuse("mount: %s: wrong fs type, bad option, bad superblock on %s" % (arguments[-1], device))
    os.execv(os.path.join(programs, "mount"), ["mount", "--bind", content_of(device), arguments[-1]])


def stripe(arguments):
    """`mdadm --create /dev/md/NAME --run --level=0 --raid-devices=N DEVICE...`"""
    if arguments[:1] != ["--create"] or arguments[2:4] != ["--run", "--level=0"] or not arguments[1].startswith(ARRAY):
        return refuse("mdadm: unknown options: %s" % " ".join(arguments))
    devices = arguments[5:]
    if arguments[4] != "--raid-devices=%d" % len(devices) or len(devices) < 2 or len(set(devices)) < len(devices):
        return refuse("mdadm: You have listed more devices (%d) than are in the array" % len(devices))
    for device in devices:
        if is_other(device):
            return refuse("mdadm: cannot open %s: No such file or directory" % device)
        if os.listdir(os.path.join(DEVICES, os.path.basename(device), "holders")):
            return refuse("mdadm: super1.x cannot open %s: Device or resource busy" % device)
    for device in devices:
        os.makedirs(os.path.join(DEVICES, os.path.basename(device), "holders", "md127"))
    os.makedirs(os.path.join(CONTENT, "arrays", os.path.basename(arguments[1])))
    return 0


def make_file_system(arguments):
    device = arguments[-1]
    if is_other(device):
        return refuse("mke2fs: No such file or directory while trying to determine filesystem size of %s" % device)
    name = os.path.basename(device)
    if not device.startswith(ARRAY) and os.listdir(os.path.join(DEVICES, name, "holders")):
        return refuse("%s is apparently in use by the system; will not make a filesystem here!" % device)
    os.makedirs(content_of(device), exist_ok=True)
    return 0


def content_of(device):
    return os.path.join(CONTENT, "file-systems", os.path.basename(device))


def is_other(device):
    """Whether the machine has no such local disk or array."""
    name = os.path.basename(device)
    if device.startswith(ARRAY):
        return not os.path.isdir(os.path.join(CONTENT, "arrays", name))
    return device != "/dev/" + name or not os.path.isdir(os.path.join(DEVICES, name))


def refuse(words):
    sys.stderr.write(words + "\n")
    return 1


sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
