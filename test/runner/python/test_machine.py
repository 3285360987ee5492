import json
import os
import stat
import subprocess
import sys
import time
from unittest import mock

from support import HERE, FakeClock, FolderTest, patient

from crucible_runner.process import processes
from crucible_runner.artifacts import find_artifacts, matches_of
from crucible_runner.clock import machine_age_ms
from crucible_runner.process.container import carried, container_command, gpus_for_docker
from crucible_runner.documents import HELPER_PROGRESS, HELPER_SAVED, parse
from crucible_runner.process.gpus import count_of
from crucible_runner.process.environment import Facts, container_environment, workload_environment
from crucible_runner.process.gpus import Gpus, parse_gpus
from crucible_runner.control.memory import Memory
from crucible_runner.notices import open_source
from crucible_runner.paths import Paths, remove_tree

HELPERS = os.path.join(HERE, *[".."] * 3, "bindings/python/crucible/src/crucible/checkpoint")


class AgeTest(FolderTest):
    def test_is_that_of_the_first_process(self):
        os.mkdir(self.at("1"))
        ticks = os.sysconf("SC_CLK_TCK")
        fields = ["S"] + ["0"] * 18 + [str(100 * ticks)] + ["0"] * 10
        self.write("1/stat", "1 (a (strange) name) " + " ".join(fields))
        self.write("uptime", "160.5 10.0")
        self.assertEqual(machine_age_ms(self.at("")), 60_500)

    def test_is_unknown_where_the_system_does_not_tell(self):
        self.assertIsNone(machine_age_ms(self.at("nowhere")))
        self.assertIsInstance(machine_age_ms(), (int, type(None)))


class MemoryTest(FolderTest):
    def memory(self, clock, boot="boot-1", attempt="job-a-1"):
        return Memory(self.at("runner.json"), attempt, clock, boot)

    def test_a_first_start(self):
        memory = self.memory(FakeClock(mono_ms=5_000))
        self.assertTrue(memory.is_first_start)
        self.assertEqual((memory.started_ms, memory.lease_until_ms), (5_000, None))

    def test_another_start_in_the_same_boot(self):
        clock = FakeClock(mono_ms=5_000)
        self.memory(clock).save(65_000)
        clock.advance(20_000)
        again = self.memory(clock)
        self.assertFalse(again.is_first_start)
        self.assertEqual((again.started_ms, again.lease_until_ms), (5_000, 65_000))

    def test_the_time_since_the_order_counts_and_stays_what_it_was_at_the_first_start(self):
        clock = FakeClock(mono_ms=500_000)
        issued_at_ms = clock.wall_ms() - 90_000
        memory = self.memory(clock)
        self.assertEqual(memory.ordered_ms(issued_at_ms), 410_000)
        self.assertEqual(memory.ordered_ms(clock.wall_ms() + 20_000), 500_000)
        memory.save(600_000)
        clock.advance(10_000)
        clock.set_wall(issued_at_ms - 3_600_000)
        self.assertEqual(self.memory(clock).ordered_ms(issued_at_ms), 410_000)

    def test_a_machine_that_may_have_been_queued_counts_from_half_a_minute_before_its_own_beginning(self):
        clock = FakeClock(mono_ms=500_000)
        order = {"issuedAtMs": clock.wall_ms() - 90_000}
        queued = dict(order, queueMs=60_000)
        memory = self.memory(clock)
        self.assertEqual(memory.began_ms(order, 20_000), 410_000)
        self.assertEqual(memory.began_ms(queued, 20_000), 450_000)
        # Billing does not begin before the order.
        self.assertEqual(memory.began_ms(queued, 70_000), 410_000)
        # An old machine that was given the order later, and one that does not tell its age.
        self.assertEqual(memory.began_ms(queued, 3_600_000), 410_000)
        self.assertEqual(memory.began_ms(queued, None), 470_000)
        memory.save(600_000)
        clock.advance(10_000)
        self.assertEqual(self.memory(clock).began_ms(queued, 5_000), 470_000)

    def test_a_queued_machine_may_start_so_long_after_it_began_and_not_after_the_longest_queue(self):
        clock = FakeClock(mono_ms=500_000)
        order = {"issuedAtMs": clock.wall_ms() - 90_000, "startWithinMs": 20_000}
        memory = self.memory(clock)
        self.assertEqual(memory.left_to_start_ms(order, 410_000), -40_000)
        order["queueMs"] = 60_000
        self.assertEqual(memory.left_to_start_ms(order, 480_000), 20_000)
        self.assertEqual(memory.left_to_start_ms(order, 420_000), -30_000)
        order["queueMs"] = 30_000
        self.assertEqual(memory.left_to_start_ms(order, 480_000), -10_000)

    def test_another_start_after_a_boot_goes_by_the_wall_clock(self):
        clock = FakeClock(mono_ms=500_000)
        self.memory(clock).save(560_000)
        later = FakeClock(mono_ms=3_000, wall_ms=clock.wall_ms() + 40_000)
        again = self.memory(later, boot="boot-2")
        self.assertEqual(later.mono_ms() - again.started_ms, 40_000)
        self.assertEqual(again.lease_until_ms - later.mono_ms(), 20_000)

    def test_a_directory_of_another_attempt_is_refused(self):
        self.memory(FakeClock()).save(1)
        self.assertRaisesRegex(
            ValueError, "belongs to job-a-1", self.memory, FakeClock(), "boot-1", "job-a-2"
        )


class EnvironmentTest(FolderTest):
    def facts(self, **changes):
        paths = Paths(self.at("machine"))
        os.makedirs(paths.root, exist_ok=True)
        paths.make()
        order = {
            "jobId": "job-a",
            "jobName": "name",
            "attempt": 2,
            "attemptId": "job-a-2",
            "env": {"PATH_TO": "x", "CRUCIBLE_ATTEMPT": "9"},
            "checkpoint": {"everyMs": 0},
        }
        return Facts(dict(order, **changes), {"TOKEN": "t"}, paths, "/ck")

    def test_passes_on_what_programs_need_and_nothing_else(self):
        own = dict.fromkeys(
            "PATH HOME LC_ALL CUDA_VISIBLE_DEVICES CONDA_PREFIX https_proxy NO_PROXY AWS_SECRET_ACCESS_KEY SSH_AUTH_SOCK "
            "PYTHONPATH LD_PRELOAD MYPATH".split(),
            "/bin",
        )
        environment = workload_environment(self.facts(), own)
        for name in (
            "HOME",
            "LC_ALL",
            "CUDA_VISIBLE_DEVICES",
            "CONDA_PREFIX",
            "https_proxy",
            "NO_PROXY",
            "PATH_TO",
            "TOKEN",
        ):
            self.assertIn(name, environment)
        for name in ("AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD", "MYPATH"):
            self.assertNotIn(name, environment)
        self.assertEqual(environment["CRUCIBLE_ATTEMPT"], "2")
        self.assertEqual(environment["PYTHONPATH"], self.at("machine", "helper"))
        self.assertNotIn("CRUCIBLE_RESUME_FROM", environment)

    def test_the_program_is_told_how_many_gpus_it_has(self):
        for listed, visible, count in ((3, None, 3), (3, "0,2", 2), (3, "", 0), (0, None, 0), (0, "GPU-a", 1), (3, "-1", 0)):
            gpus = count_of([{}] * listed or None, visible)
            environment = workload_environment(self.facts()._replace(gpus=gpus), {"PATH": "/bin"})
            self.assertEqual(environment["CRUCIBLE_GPUS"], str(count), (listed, visible))

    def test_a_deep_folder_for_temporary_files_has_a_short_name(self):
        paths = Paths(self.at("machine"), self.at("d" * 60), has_user=True)
        os.makedirs(paths.root)
        paths.make()
        self.addCleanup(paths.forget_short_scratch)
        facts = self.facts()._replace(paths=paths, has_user=True)
        short = workload_environment(facts, {"PATH": "/bin"})["TMPDIR"]
        self.assertLess(len(short), 44)
        self.assertTrue(os.path.samefile(short, paths.scratch))
        self.assertEqual(workload_environment(facts, {"PATH": "/bin"})["TMPDIR"], short)
        paths.forget_short_scratch()
        self.assertFalse(os.path.lexists(short))
        # Another user could lead the link elsewhere later.
        os.symlink(paths.scratch, short)
        self.assertEqual(paths.short_scratch(), short)
        with mock.patch("os.geteuid", return_value=os.geteuid() + 1):
            self.assertEqual(paths.short_scratch(), paths.scratch)
            paths.forget_short_scratch()
            self.assertTrue(os.path.islink(short), "the link of another user is not ours to remove")

    def test_python_is_found_where_only_python3_is(self):
        self.write("bin/python3", "#!/bin/sh\n")
        os.chmod(self.at("bin", "python3"), 0o755)
        path = workload_environment(self.facts(), {"PATH": self.at("bin")})["PATH"]
        self.assertEqual(path, self.at("bin") + ":" + self.at("machine", "bin"))
        self.assertEqual(os.readlink(self.at("machine", "bin", "python")), self.at("bin", "python3"))

    def test_a_container_has_a_world_of_its_own(self):
        environment = container_environment(
            self.facts(), {"PATH": "/bin", "HOME": "/root", "http_proxy": "p"}
        )
        self.assertNotIn("PATH", environment)
        self.assertNotIn("HOME", environment)
        self.assertEqual((environment["http_proxy"], environment["TOKEN"]), ("p", "t"))

    def test_the_container_gets_this_machines_gpus(self):
        self.assertIsNone(gpus_for_docker(False, None))
        self.assertIsNone(gpus_for_docker(True, ""))
        self.assertEqual(gpus_for_docker(True, None), "all")
        self.assertEqual(gpus_for_docker(True, "1,3"), '"device=1,3"')
        order = {"attemptId": "job-a-1", "image": "img", "setup": None, "run": "run it", "shmGiB": None}
        command = container_command("docker", order, Paths("/m"), carried({"TOKEN": "t"}), "all")
        self.assertEqual(command[command.index("--gpus") + 1], "all")
        self.assertEqual(command[-4:-1], ["", "run it", ""])
        self.assertNotIn("--device", command)
        with mock.patch("glob.glob", return_value=["/dev/neuron1", "/dev/neuron0"]):
            command = container_command("docker", order, Paths("/m"), carried({}), None)
        devices = [after for word, after in zip(command, command[1:]) if word == "--device"]
        self.assertEqual(devices, ["/dev/neuron0", "/dev/neuron1"])

    def test_a_variable_of_the_job_has_no_meaning_to_the_engine(self):
        inside = carried({"GCONV_PATH": "./evil", "DOCKER_HOST": "tcp://x", "CRUCIBLE_GPUS": "0"})
        order = {"attemptId": "job-a-1", "image": "img", "setup": None, "run": "run it", "shmGiB": None}
        command = container_command("docker", order, Paths("/m"), inside, None)
        named = [after for word, after in zip(command, command[1:]) if word == "--env"]
        self.assertEqual(named, sorted(inside.variables))
        self.assertTrue(all(name.startswith("CRUCIBLE_") for name in named))
        restored = subprocess.run(
            ["sh", "-c", 'eval "$1"; exec env', "sh", inside.restore], env=inside.variables, stdout=subprocess.PIPE
        ).stdout.decode().splitlines()
        self.assertEqual({"GCONV_PATH=./evil", "DOCKER_HOST=tcp://x", "CRUCIBLE_GPUS=0"} - set(restored), set())
        self.assertFalse([line for line in restored if line.startswith("CRUCIBLE_VARIABLE")])

    def test_the_container_gets_the_jobs_directories_and_no_rights(self):
        order = {"attemptId": "job-a-1", "image": "img", "setup": None, "run": "run it", "shmGiB": None}
        command = container_command("docker", order, Paths("/m"), carried({}), None)
        volumes = [after for word, after in zip(command, command[1:]) if word == "--volume"]
        own = ["/m/%s:/m/%s" % (name, name) for name in ("work", "output", "checkpoints", "control")]
        self.assertEqual(volumes, own + ["/m/helper:/m/helper:ro"])
        self.assertEqual(command[command.index("--security-opt") + 1], "no-new-privileges")
        self.assertEqual(command[command.index("--cap-drop") + 1], "ALL")
        self.assertNotIn("--privileged", command)

    def test_the_container_of_an_engine_without_root_runs_as_the_root_that_is_this_user(self):
        order = {"attemptId": "job-a-1", "image": "img", "setup": None, "run": "run it", "shmGiB": None}
        told = {
            "podman": ('{"host": {"security": {"rootless": true}}}', "0:0"),
            "podman of root": ('{"host": {"security": {"rootless": false}}}', "1001:1002"),
            "docker": ('{"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}', "0:0"),
            "docker of root": ('{"SecurityOptions": ["name=seccomp,profile=builtin"]}', "1001:1002"),
            "an engine that does not answer": ("Cannot connect to the Docker daemon", "1001:1002"),
            "an engine with other answers": ("[]", "1001:1002"),
        }
        for engine, (words, user) in told.items():
            docker = self.write("docker", "#!/bin/sh\n[ \"$1\" = info ] && echo '%s'\n" % words)
            os.chmod(docker, stat.S_IRWXU)
            with mock.patch("os.getuid", return_value=1001), mock.patch("os.getgid", return_value=1002):
                command = container_command(docker, order, Paths("/m"), carried({}), None)
            self.assertEqual((engine, command[command.index("--user") + 1]), (engine, user))
            self.assertNotIn("--cap-add", command)


class ProcessesTest(FolderTest):
    def test_finds_by_environment_and_by_tree_and_ends_all(self):
        script = "import os, sys, time\nif os.fork() == 0:\n os.setsid()\ntime.sleep(60)"
        marked = subprocess.Popen(
            [sys.executable, "-c", script], env=dict(os.environ, CRUCIBLE_MACHINE="unit-a")
        )
        unmarked = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
        self.addCleanup(marked.wait)
        self.addCleanup(unmarked.wait)
        deadline = time.monotonic() + patient(10)
        while len(processes.of_machine("unit-a", [unmarked.pid], [])) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        found = processes.of_machine("unit-a", [unmarked.pid], [])
        self.assertEqual(len(found), 4)
        self.assertNotIn(os.getpid(), found)
        self.assertEqual(processes.of_machine("unit-b", [], []), set())
        self.assertEqual(
            processes.of_machine("unit-a", [], [marked.pid]),
            found - processes.of_machine("x", [unmarked.pid], []) - {marked.pid},
        )
        self.assertEqual(processes.end_all("unit-a", [unmarked.pid], []), set())

    def test_sees_what_is_open_for_writing(self):
        path = self.write("file", "x")
        status = os.stat(path)
        with open(path):
            self.assertNotIn((status.st_dev, status.st_ino), processes.open_for_writing([os.getpid()]))
        with open(path, "a"):
            self.assertIn((status.st_dev, status.st_ino), processes.open_for_writing([os.getpid()]))


class NoticeTest(FolderTest):
    def test_a_file(self):
        look = open_source({"kind": "file", "path": self.at("notice.json")})
        self.assertIsNone(look())
        self.write("notice.json", '{"terminateAtMs"')
        self.assertRaises(OSError, look)
        self.write("notice.json", '{"terminateAtMs": 5, "why": "x"}')
        self.assertEqual(look(), 5)

    def test_none(self):
        self.assertIsNone(open_source({"kind": "none"})())


class GpusTest(FolderTest):
    def test_reads_what_the_driver_prints(self):
        listing = "0, NVIDIA A100-SXM4-40GB, 97, 30123, 40960\n1, Tesla T4, [N/A], 4, 15360\nnonsense\n"
        gpus = parse_gpus(listing)
        self.assertEqual([gpu["utilizationPercent"] for gpu in gpus], [97, 0])
        self.assertEqual(gpus[1]["name"], "Tesla T4")

    def test_keeps_the_peak_of_each_gpu(self):
        gpus = Gpus()
        used = lambda first, second: parse_gpus("0, T4, 5, %d, 15360\n1, T4, 5, %d, 15360\n" % (first, second))
        gpus.with_peaks(used(9000, 20))
        peaks = gpus.with_peaks(used(300, 40))
        self.assertEqual([(gpu["memoryUsedMiB"], gpu["memoryPeakMiB"]) for gpu in peaks], [(300, 9000), (40, 40)])


class ArtifactsTest(FolderTest):
    def test_folders_may_be_nested_as_deeply_as_paths_can_be_long(self):
        deep = self.at("output", *(["0"] * 1_500))
        with self.in_deep_folder("output", 1_500):
            open("file", "w").close()
        found, left_out, remarks = find_artifacts(self.at("output"), self.at("work"), {})
        self.assertEqual((list(found.values()), left_out, remarks), ([os.path.join(deep, "file")], [], []))

    def test_a_folder_that_cannot_be_read_is_spoken_of_and_all_else_is_kept(self):
        self.write("output/a/file", "x")
        self.write("output/b/file", "x")
        listdir = os.listdir

        def closed(path):
            if path.endswith("/a"):
                raise PermissionError(13, "Permission denied", path)
            return listdir(path)

        with mock.patch("os.listdir", closed):
            found, left_out, _ = find_artifacts(self.at("output"), self.at("work"), {})
        self.assertEqual(list(found), ["b/file"])
        self.assertRegex(left_out[0], "^the contents of a are not kept: .*Permission denied")

    def test_finds_files_by_pattern_and_all_of_the_output(self):
        for name in (
            "work/a.txt",
            "work/sub/b.txt",
            "work/sub/deep/c.bin",
            "work/[x]/d",
            "output/a.txt",
            "output/o/p",
        ):
            self.write(name, name)
        outside = ["/etc/passwd", "../x", "sub/../../x", "sub/.."]
        self.write("x", "outside")
        matches = matches_of(self.at("work"), ["*.txt", "sub", "**/*.bin", *outside])
        self.assertEqual([pattern for pattern, paths in matches.items() if not paths], outside)
        found, left_out, remarks = find_artifacts(self.at("output"), self.at("work"), matches)
        names = {name: os.path.relpath(path, self.folder) for name, path in found.items()}
        self.assertEqual(
            names,
            {
                "a.txt": "output/a.txt",
                "sub/b.txt": "work/sub/b.txt",
                "sub/deep/c.bin": "work/sub/deep/c.bin",
                "o/p": "output/o/p",
            },
        )
        self.assertEqual(left_out, [])
        self.assertEqual(remarks, ["the output %s is outside the working directory and is not kept" % pattern for pattern in outside])


class HelperTest(FolderTest):
    def python(self, script, **environment):
        os.makedirs(self.at("control", "saved"), exist_ok=True)
        variables = {"PYTHONPATH": HELPERS, "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
        variables.update(environment)
        return subprocess.run(
            [sys.executable, "-c", "import os, _crucible_job as job\n" + script],
            cwd=self.folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )

    def inside(self, script):
        folders = {"CRUCIBLE_CONTROL_DIR": self.at("control"), "CRUCIBLE_CHECKPOINT_DIR": self.at("ck")}
        return self.python(script, **folders)

    def test_outside_crucible_it_does_nothing(self):
        script = "job.progress(1, 2, float('nan')); print(job.should_stop(), job.resume_path()); job.checkpoint_saved('x', 1)"
        run = self.python(script)
        self.assertEqual((run.stdout, run.stderr), ("False None\n", ""))
        run = self.python("print(job.checkpoint_dir(), job.output_dir())")
        self.assertEqual(run.stdout, "./checkpoints ./output\n")

    def test_tells_the_newest_progress(self):
        run = self.inside(
            "for step in range(1000): job.progress(step, 1000, 1 / (step + 1))\njob.progress(1000, 1000, float('inf'))"
        )
        self.assertEqual(run.stderr, "")
        told = parse(HELPER_PROGRESS, self.read("control/progress.json").encode())
        self.assertEqual(told, {"step": 1000, "total": 1000, "loss": None})

    def test_declares_checkpoints(self):
        run = self.inside(
            "job.checkpoint_saved(os.path.join(job.checkpoint_dir(), 'a', 'b.pt'), 7); job.checkpoint_saved('.', 8)"
        )
        self.assertEqual(run.stderr, "")
        self.assertEqual(
            parse(HELPER_SAVED, self.read("control/saved/7.json").encode()), {"path": "a/b.pt", "step": 7}
        )
        self.assertEqual(
            parse(HELPER_SAVED, self.read("control/saved/8.json").encode()), {"path": ".", "step": 8}
        )
        run = self.inside("job.checkpoint_saved('/elsewhere/a.pt', 7)")
        self.assertIn("ValueError: the checkpoint /elsewhere/a.pt is not in", run.stderr)

    def test_hears_the_request_to_stop(self):
        self.write("control/stop.json", json.dumps({"reason": "interrupted", "windowMs": 5}))
        self.assertEqual(self.inside("print(job.should_stop())").stdout, "True\n")
        ignoring = "import signal; job.should_stop(); os.kill(os.getpid(), signal.SIGTERM); print('alive')"
        self.assertEqual(self.inside(ignoring).stdout, "alive\n")
        own = "import signal; signal.signal(signal.SIGTERM, lambda *_: print('own')); job.should_stop(); os.kill(os.getpid(), 15)"
        self.assertEqual(self.inside(own).stdout, "own\n")

    def test_a_full_disk_does_not_end_a_training(self):
        run = self.inside(
            "import shutil; shutil.rmtree(os.environ['CRUCIBLE_CONTROL_DIR']); job.progress(1); print('on')"
        )
        self.assertEqual((run.stdout, run.stderr), ("on\n", ""))


class PathsTest(FolderTest):
    def test_closes_the_jobs_directory_to_other_users(self):
        for has_user, mode in ((False, 0o700), (True, 0o711)):
            Paths(self.at("machine"), self.at("job"), has_user).make()
            self.assertEqual(stat.S_IMODE(os.stat(self.at("job")).st_mode), mode)

    def test_removes_whatever_stands_in_the_place_of_a_directory(self):
        self.write("elsewhere/file", "x")
        os.chmod(self.at("elsewhere"), 0o755)
        os.symlink(self.at("elsewhere"), self.at("link"))
        os.symlink(self.at("nowhere"), self.at("dangling"))
        os.mkfifo(self.at("pipe"))
        self.write("file", "x")
        for name in ("link", "dangling", "pipe", "file"):
            remove_tree(self.at(name))
            self.assertFalse(os.path.lexists(self.at(name)), name)
        self.assertEqual(self.read("elsewhere/file"), "x")
        self.assertEqual(os.stat(self.at("elsewhere")).st_mode & 0o777, 0o755)

    def test_removes_folders_that_are_nested_more_deeply_than_paths_can_be_long(self):
        with self.in_deep_folder("a", 2_500):
            open("file", "w").close()
        self.write("a/1", "x")
        remove_tree(self.at("a"))
        self.assertFalse(os.path.exists(self.at("a")))

    def test_removes_no_content_of_links(self):
        self.write("elsewhere/file", "x")
        os.makedirs(self.at("a", "b"))
        os.symlink(self.at("elsewhere"), self.at("a", "b", "link"))
        remove_tree(self.at("a"))
        self.assertEqual((self.read("elsewhere/file"), os.path.exists(self.at("a"))), ("x", False))

    def test_removes_nothing_elsewhere_when_a_folder_is_moved_meanwhile(self):
        self.write("a/b/c/file", "x")
        self.write("elsewhere/file", "x")
        os.chmod(self.at("elsewhere"), 0o755)
        listdir = os.listdir

        def moving(folder):
            names = listdir(folder)
            if names == ["file"]:
                os.rename(self.at("a", "b", "c"), self.at("elsewhere", "c"))
            return names

        with mock.patch("os.listdir", moving):
            with self.assertRaisesRegex(OSError, "was moved"):
                remove_tree(self.at("a"))
        self.assertEqual(sorted(os.listdir(self.at("elsewhere"))), ["c", "file"])
        self.assertEqual(os.stat(self.at("elsewhere")).st_mode & 0o777, 0o755)

    def test_removes_what_was_made_read_only(self):
        self.write("a/b/c", "x")
        os.chmod(self.at("a", "b"), 0o500)
        remove_tree(self.at("a"))
        remove_tree(self.at("a"))
        self.assertFalse(os.path.exists(self.at("a")))
