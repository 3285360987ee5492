import io
import os
import subprocess
import sys
from unittest import mock

from support import FolderTest

from crucible_runner.process import cgroup

from crucible_runner.process import processes

# A line of mountinfo up to its type of file system.
HEAD = "30 24 0:27 %s %s rw,nosuid - "
V2 = HEAD + "cgroup2 cgroup2 rw\n"
V1 = HEAD + "cgroup cgroup rw,%s\n"


class OwnGroupsTest(FolderTest):
    def own(self, mounts, groups):
        files = {"/proc/self/mountinfo": mounts, "/proc/self/cgroup": groups}
        with mock.patch("builtins.open", lambda path: io.StringIO(files[path])):
            return list(cgroup._own_groups())

    def test_version_2(self):
        own = self.own(V2 % ("/", "/sys/fs/cgroup"), "0::/system.slice/worker.service\n")
        self.assertEqual(own, ["/sys/fs/cgroup/system.slice/worker.service"])

    def test_version_1_takes_what_limits_nothing(self):
        mounts = V1 % ("/", "/sys/fs/cgroup/pids", "pids") + V1 % ("/", "/sys/fs/cgroup/memory", "memory")
        mounts += V1 % ("/", "/sys/fs/cgroup/systemd", "name=systemd")
        own = self.own(mounts, "9:name=systemd:/a\n8:pids:/b\n4:memory:/c\n")
        self.assertEqual(own, ["/sys/fs/cgroup/systemd/a", "/sys/fs/cgroup/pids/b"])

    def test_a_container_that_sees_its_own_group_as_the_root_of_the_mount(self):
        own = self.own(V2 % ("/docker/abc", "/sys/fs/cgroup"), "0::/docker/abc\n")
        self.assertEqual(own, ["/sys/fs/cgroup"])

    def test_a_group_outside_the_mount_is_left_alone(self):
        self.assertEqual(self.own(V2 % ("/docker/abc", "/sys/fs/cgroup"), "0::/other\n"), [])

    def test_none_on_systems_without_proc(self):
        with mock.patch("builtins.open", side_effect=FileNotFoundError):
            self.assertEqual(list(cgroup._own_groups()), [])
            self.assertIsNone(cgroup.make("m-1", self.at("record")))


class MembersTest(FolderTest):
    def test_processes_in_groups_that_are_nested_as_deeply_as_paths_can_be_long(self):
        with self.in_deep_folder("group", 1_500):
            with open("cgroup.procs", "w") as file:
                file.write("7\n0\n")
        self.assertEqual(cgroup.members(self.at("group")), {7})


class RecordTest(FolderTest):
    def test_a_record_that_leads_elsewhere_is_not_believed(self):
        elsewhere = self.at("crucible-m-1")
        os.mkdir(elsewhere)
        for text in (elsewhere, "/sys/fs/cgroup/../../.." + elsewhere, "/sys/fs/cgroup", "\0", ""):
            self.assertIsNone(cgroup.recorded("m-1", self.write("record", text)), text)


class GroupTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.machine = "unit-group-%d" % os.getpid()
        self.group = cgroup.make(self.machine, self.at("record"))
        if self.group is None:
            self.skipTest("no control group can be made here")
        self.addCleanup(cgroup.remove, self.group)
        self.addCleanup(processes._groups.pop, self.machine, None)

    def start(self):
        """A process without the machine's mark, in its group."""
        program = "import time; time.sleep(60)"
        child = subprocess.Popen([sys.executable, "-c", program], env={}, preexec_fn=lambda: cgroup.enter(self.group))
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def test_what_is_in_it_is_found_and_ended(self):
        child = self.start()
        self.assertNotIn(child.pid, processes.of_machine(self.machine, [], []))
        processes.also_in(self.machine, self.group)
        self.assertIn(child.pid, processes.of_machine(self.machine, [], []))
        self.assertEqual(processes.end_all(self.machine, [], []), set())
        self.assertEqual(child.wait(), -9)

    def test_what_is_to_be_kept_is_kept_also_in_the_group(self):
        child = self.start()
        processes.also_in(self.machine, self.group)
        self.assertEqual(processes.end_all(self.machine, [], [child.pid]), set())
        self.assertIsNone(child.poll())

    def test_the_next_runner_finds_the_same_group_and_it_goes_with_what_is_below_it(self):
        self.assertEqual(cgroup.make(self.machine, self.at("record")), self.group)
        os.mkdir(os.path.join(self.group, "of-the-job"))
        cgroup.remove(self.group)
        self.assertFalse(os.path.exists(self.group))
        self.assertIsNone(cgroup.recorded(self.machine, self.at("record")))
