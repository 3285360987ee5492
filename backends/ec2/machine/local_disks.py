"""Lets the job use the NVMe disks of the machine itself, which are faster than its root disk and paid for with it.

Their content ends with the machine, and nothing is mounted at boot: whatever must outlive the machine is in the store, as without them.
"""

import os
import shutil
import subprocess

LOCAL_MODEL = "Amazon EC2 NVMe Instance Storage"
STRIPED = "/dev/md/crucible"
# New disks need no discarding of old content, and empty tables are written later.
FORMAT = ("-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1")
SECTOR_BYTES = 512
# A RAID of eight disks and a file system of 30 TB take seconds.
PROGRAM_SECONDS = 60


class Unusable(Exception):
    pass


def use_local_disks(state, home, has_image, sys_block="/sys/block", mounts="/proc/self/mountinfo"):
    """Puts the directories of jobs below `state`, and caches below `home`, on the local disks; with `has_image` also the layers of images.
    Returns a remark for people if that is not done although there are local disks, otherwise None."""
    jobs = os.path.join(state, "jobs")
    try:
        disks = [name for name in sorted(os.listdir(sys_block)) if read_text(sys_block, name, "device/model") == LOCAL_MODEL]
    except OSError:
        return None
    if not disks:
        return None
    try:
        if any(place == jobs for _, place in mounts_in(mounts)):
            return None
        wait_for_image()
        mounted = mounted_at(disks, sys_block, mounts)
        if mounted is not None:
            folder, remark = (os.path.join(mounted, "crucible") if bytes_of(mounted) >= bytes_of(state) else None), None
        else:
            folder, remark = mount_local(disks, state, sys_block)
        if folder is None:
            return remark
        bind(os.path.join(folder, "jobs"), jobs)
        if is_empty(os.path.join(home, ".cache")):
            bind(os.path.join(folder, "cache"), os.path.join(home, ".cache"))
        if has_image:
            move_images(folder)
        return remark
    except (Unusable, OSError) as error:
        return "the machine's local disks are not all used: %s" % error


def wait_for_image():
    """Deep Learning images stripe the disks at boot, and mount them at /opt/dlami/nvme. A start of that service waits for its end."""
    try:
        call("systemctl", "start", "dlami-nvme")
    except Unusable:
        pass  # an image of another kind


def mount_local(disks, state, sys_block):
    """Returns a folder on the local disks, or None, and a remark or None. The job's root disk is as large as it asked for, so smaller local
    disks are left alone."""
    if any(users_of(name, sys_block) for name in disks):
        return None, "the machine's local disks are in use and not mounted: the job uses its root disk"
    found, remark = disks, None
    if len(found) > 1 and shutil.which("mdadm") is None:
        disks = found[:1]
        remark = "the machine uses one of its %d local disks, because its image has no mdadm" % len(found)
    size = sum(int(read_text(sys_block, name, "size") or 0) * SECTOR_BYTES for name in disks)
    if size < bytes_of(state):
        return None, remark and "the machine's local disks are not used: one is too small, and its image has no mdadm"
    device = "/dev/" + disks[0]
    if len(disks) > 1:
        device = STRIPED
        count = "--raid-devices=%d" % len(disks)
        call("mdadm", "--create", device, "--run", "--level=0", count, *["/dev/" + name for name in disks])
    folder = os.path.join(state, "local")
    call("mkfs.ext4", *FORMAT, device)
    os.makedirs(folder, exist_ok=True)
    call("mount", "-o", "noatime", device, folder)
    return folder, remark


def mounted_at(disks, sys_block, mounts):
    """Where a file system is mounted that is on the disks, also through a RAID or a logical volume; None without one."""
    names = list(disks)
    for name in names:
        names += [one for one in users_of(name, sys_block) if one not in names]
    numbers = {read_text(sys_block, name, "dev") for name in names}
    for name in disks:
        numbers.update(read_text(sys_block, name, part + "/dev") for part in parts_of(name, sys_block))
    return next((place for number, place in mounts_in(mounts) if number in numbers), None)


def mounts_in(path):
    """Device number and place of each mount."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return [(line.split()[2], line.split()[4]) for line in file]


def users_of(name, sys_block):
    """Devices that are made of this one or of its partitions; the partitions themselves if nothing is made of them."""
    places = [name] + [os.path.join(name, part) for part in parts_of(name, sys_block)]
    found = []
    for place in places:
        holders = os.path.join(sys_block, place, "holders")
        found += os.listdir(holders) if os.path.isdir(holders) else []
    return found or parts_of(name, sys_block)


def parts_of(name, sys_block):
    try:
        return [each for each in sorted(os.listdir(os.path.join(sys_block, name))) if each.startswith(name + "p")]
    except OSError:
        return []


def bind(source, target):
    os.makedirs(source, exist_ok=True)
    os.makedirs(target, exist_ok=True)
    call("mount", "--bind", source, target)


def move_images(folder):
    """Moves the folders of the container engine to the local disks, unless it already has images or is not a service here."""
    if shutil.which("docker") is None or subprocess.call(["systemctl", "is-active", "--quiet", "docker"]) != 0:
        return
    if call("docker", "image", "ls", "--quiet") != "":
        return
    call("systemctl", "stop", "docker.socket", "docker", "containerd")
    try:
        for name in ("docker", "containerd"):
            if os.path.isdir("/var/lib/" + name):
                bind(os.path.join(folder, name), "/var/lib/" + name)
    finally:
        call("systemctl", "start", "containerd", "docker.socket", "docker")


def is_empty(folder):
    return not os.path.isdir(folder) or not os.listdir(folder)


def bytes_of(folder):
    disk = os.statvfs(folder)
    return disk.f_blocks * disk.f_frsize


def read_text(*path):
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def call(*command):
    """Returns the output of a program. Raises `Unusable` with its last words."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PROGRAM_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Unusable("%s does not end" % command[0])
    except OSError as error:
        raise Unusable("%s: %s" % (command[0], error.strerror))
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Unusable("%s: %s" % (command[0], lines[-1] if lines else "exit code %d" % done.returncode))
    return done.stdout.decode("utf-8", "replace").strip()
