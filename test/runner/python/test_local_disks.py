"""Which local disks a machine uses, with programs that only note how they are called."""

import importlib.util
import os
import shutil
import stat
import subprocess
import unittest

from support import HERE, FolderTest

PROGRAM = os.path.join(HERE, "..", "..", "..", "backends", "ec2", "machine", "local_disks.py")
MODEL = "Amazon EC2 NVMe Instance Storage        \n"
HUGE = 1 << 60


def load():
    spec = importlib.util.spec_from_file_location("local_disks", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class LocalDisks(FolderTest):
    def setUp(self):
        super().setUp()
        self.module = load()
        self.state, self.home = self.at("state"), self.at("home")
        os.makedirs(self.state)
        os.makedirs(self.at("sys"))
        os.makedirs(self.at("bin"))
        self.path = os.environ["PATH"]
        os.environ["PATH"] = self.at("bin")
        self.addCleanup(os.environ.__setitem__, "PATH", self.path)
        self.write("mounts", "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
        for name in ("mkfs.ext4", "mount", "mdadm"):
            self.program(name)
        self.disk("nvme0n1", "Amazon Elastic Block Store\n")

    def program(self, name, script="exit 0"):
        path = self.write("bin/" + name, '#!/bin/sh\necho "%s $*" >> %s\n%s\n' % (name, self.at("calls"), script))
        os.chmod(path, stat.S_IRWXU)

    def disk(self, name, model=MODEL, size=HUGE, dev="259:1", holders=()):
        self.write("sys/%s/device/model" % name, model)
        self.write("sys/%s/size" % name, "%d\n" % (size // 512))
        self.write("sys/%s/dev" % name, dev + "\n")
        for holder in holders:
            os.makedirs(self.at("sys/%s/holders/%s" % (name, holder)))

    def use(self, has_image=False):
        return self.module.use_local_disks(self.state, self.home, has_image, self.at("sys"), self.at("mounts"))

    def calls(self):
        try:
            with open(self.at("calls")) as file:
                return [line.replace(self.folder + "/", "") for line in file.read().splitlines()]
        except FileNotFoundError:
            return []

    def test_a_machine_without_local_disks_changes_nothing(self):
        self.assertIsNone(self.use())
        self.assertEqual(self.calls(), [])

    def test_several_disks_are_striped_and_hold_jobs_and_caches(self):
        self.disk("nvme1n1")
        self.disk("nvme2n1")
        self.assertIsNone(self.use())
        self.assertEqual(
            self.calls(),
            [
                "mdadm --create /dev/md/crucible --run --level=0 --raid-devices=2 /dev/nvme1n1 /dev/nvme2n1",
                "mkfs.ext4 %s /dev/md/crucible" % " ".join(self.module.FORMAT),
                "mount -o noatime /dev/md/crucible state/local",
                "mount --bind state/local/jobs state/jobs",
                "mount --bind state/local/cache home/.cache",
            ],
        )

    def test_a_repeated_start_changes_nothing(self):
        self.disk("nvme1n1", holders=["md127"])
        self.write("mounts", "2 1 259:1 /jobs %s rw - ext4 /dev/nvme1n1 rw\n" % os.path.join(self.state, "jobs"))
        self.assertIsNone(self.use())
        self.assertEqual(self.calls(), [])

    def test_an_image_without_mdadm_gives_one_disk_and_a_remark(self):
        os.unlink(self.at("bin/mdadm"))
        self.disk("nvme1n1")
        self.disk("nvme2n1")
        self.assertIn("one of its 2 local disks", self.use())
        self.assertIn("mount -o noatime /dev/nvme1n1 state/local", self.calls())

    def test_one_disk_of_several_may_be_too_small(self):
        os.unlink(self.at("bin/mdadm"))
        for name in ("nvme1n1", "nvme2n1"):
            self.disk(name, size=4096)
        self.assertIn("one is too small, and its image has no mdadm", self.use())
        self.assertEqual(self.calls(), [])

    def test_disks_that_are_smaller_than_the_root_disk_are_left_alone(self):
        self.disk("nvme1n1", size=4096)
        self.assertIsNone(self.use())
        self.assertEqual(self.calls(), [])

    def test_disks_that_an_image_has_mounted_are_used_as_they_are(self):
        os.makedirs(self.at("nvme"))
        self.disk("nvme1n1", holders=["dm-0"])
        self.disk("nvme2n1", holders=["dm-0"])
        self.write("sys/dm-0/dev", "253:0\n")
        self.write("mounts", "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 253:0 / %s rw - ext4 /dev/x rw\n" % self.at("nvme"))
        self.program("systemctl")
        self.assertIsNone(self.use())
        self.assertEqual(self.calls()[:2], ["systemctl start dlami-nvme", "mount --bind nvme/crucible/jobs state/jobs"])

    def test_disks_that_something_else_uses_are_left_alone(self):
        for holders, part in ((["md127"], None), ([], "nvme1n1p1")):
            with self.subTest(holders=holders, part=part):
                self.disk("nvme1n1", holders=holders)
                if part is not None:
                    shutil.rmtree(self.at("sys/nvme1n1/holders"))
                    self.write("sys/nvme1n1/%s/dev" % part, "259:2\n")
                self.assertIn("in use and not mounted", self.use())
                self.assertEqual(self.calls(), [])

    def test_a_failure_is_said_and_leaves_the_root_disk(self):
        self.disk("nvme1n1")
        self.program("mkfs.ext4", "echo first >&2; echo no space >&2; exit 1")
        self.assertEqual(self.use(), "the machine's local disks are not all used: mkfs.ext4: no space")
        self.assertFalse(os.path.exists(os.path.join(self.state, "jobs")))

    def test_caches_that_an_image_brings_stay_visible(self):
        self.disk("nvme1n1")
        self.write("home/.cache/model", "weights")
        self.assertIsNone(self.use())
        self.assertNotIn("home/.cache", " ".join(self.calls()))

    def test_an_engine_without_images_keeps_its_layers_there(self):
        self.disk("nvme1n1")
        self.program("docker")
        self.program("systemctl")
        self.assertIsNone(self.use(has_image=True))
        engine = [line for line in self.calls() if line.startswith(("docker", "systemctl"))]
        self.assertEqual(
            engine,
            [
                "systemctl start dlami-nvme",
                "systemctl is-active --quiet docker",
                "docker image ls --quiet",
                "systemctl stop docker.socket docker containerd",
                "systemctl start containerd docker.socket docker",
            ],
        )

    def test_an_engine_with_images_is_left_alone(self):
        self.disk("nvme1n1")
        self.program("docker", "echo 0123456789ab")
        self.program("systemctl")
        self.assertIsNone(self.use(has_image=True))
        self.assertNotIn("systemctl stop docker.socket docker containerd", self.calls())

    @unittest.skipIf(shutil.which("mkfs.ext4") is None, "no mkfs.ext4")
    def test_the_real_program_knows_the_options(self):
        path = self.write("image", "")
        os.truncate(path, 64 << 20)
        command = [shutil.which("mkfs.ext4", path=self.path), *self.module.FORMAT, path]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)
