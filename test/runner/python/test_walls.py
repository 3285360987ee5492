import os
import sqlite3
from contextlib import closing

from support import FolderTest

from crucible_runner.paths import read_plain, write_whole
from crucible_runner.checkpoint.hold import Hold
from crucible_runner.checkpoint.scan import Filter, scan, scan_declared, select_declared
from crucible_runner.checkpoint.staging import Staged, stage
from crucible_runner.walls import OutsideWalls, Walls, path_of


class WallsTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.write("job/work/own.txt", "own")
        self.write("host/secret.txt", "secret")
        self.walls = Walls([self.at("job", "work"), self.at("job", "output")])

    def read(self, path, walls=None):
        with (walls or self.walls).opened(path) as descriptor:
            with open(path_of(descriptor)) as file:
                return file.read()

    def test_opens_what_is_inside_also_through_links(self):
        os.makedirs(self.at("job", "output"))
        os.symlink(self.at("job", "work"), self.at("job", "output", "there"))
        self.assertEqual(self.read(self.at("job", "work", "own.txt")), "own")
        self.assertEqual(self.read(self.at("job", "output", "there", "own.txt")), "own")

    def test_refuses_links_that_lead_out(self):
        os.symlink(self.at("host", "secret.txt"), self.at("job", "work", "file"))
        os.symlink(self.at("host"), self.at("job", "work", "folder"))
        os.symlink("../../host/secret.txt", self.at("job", "work", "relative"))
        for name in ("file", os.path.join("folder", "secret.txt"), "relative"):
            self.assertFalse(self.walls.holds(self.at("job", "work", name)))
            with self.assertRaises(OutsideWalls):
                self.read(self.at("job", "work", name))

    def test_a_name_that_only_begins_alike_is_outside(self):
        self.write("job/work-of-others/file", "x")
        self.assertFalse(self.walls.holds(self.at("job", "work-of-others", "file")))

    def test_does_not_follow_a_link_that_comes_after_the_look(self):
        path = self.at("job", "work", "own.txt")
        look = os.path.realpath

        def swap(asked):
            found = look(asked)
            if asked == path and not os.path.islink(path):
                os.unlink(path)
                os.symlink(self.at("host", "secret.txt"), path)
            return found

        self.patch_realpath(swap)
        with self.assertRaises(OutsideWalls):
            self.read(path)

    def patch_realpath(self, by):
        before = os.path.realpath
        os.path.realpath = by
        self.addCleanup(setattr, os.path, "realpath", before)

    def test_refuses_what_is_no_file_and_does_not_wait_for_a_pipe(self):
        os.mkfifo(self.at("job", "work", "pipe"))
        for name in ("pipe", ""):
            with self.assertRaises(OSError):
                self.read(self.at("job", "work", name))

    def test_without_roots_every_link_is_followed(self):
        os.symlink(self.at("host", "secret.txt"), self.at("job", "work", "file"))
        self.assertEqual(self.read(self.at("job", "work", "file"), Walls(None)), "secret")


class ControlTest(FolderTest):
    def test_reads_no_file_through_a_link(self):
        self.write("host/progress.json", "{}")
        os.makedirs(self.at("control"))
        os.symlink(self.at("host", "progress.json"), self.at("control", "progress.json"))
        os.symlink(self.at("host"), self.at("control", "saved"))
        for path in (self.at("control", "progress.json"), self.at("control", "saved", "progress.json")):
            with self.assertRaises(OSError):
                read_plain(path)

    def test_writes_no_file_through_a_link(self):
        self.write("host/victim", "before")
        os.makedirs(self.at("control"))
        for name in ("stop.json", "stop.json.part"):
            os.symlink(self.at("host", "victim"), self.at("control", name))
        write_whole(self.at("control", "stop.json"), b"{}")
        self.assertEqual(self.read("host/victim"), "before")
        self.assertEqual(self.read("control/stop.json"), "{}")
        self.assertFalse(os.path.islink(self.at("control", "stop.json")))


class CheckpointWallsTest(FolderTest):
    """What a job in a container may have in its checkpoints."""

    def setUp(self):
        super().setUp()
        self.write("host/secret.txt", "secret")
        self.write("job/work/shared.bin", "shared")
        self.write("job/checkpoints/step-1/own.bin", "own")
        self.checkpoints = self.at("job", "checkpoints")
        os.symlink("step-1", self.at("job", "checkpoints", "latest"))
        os.symlink("../../work/shared.bin", self.at("job", "checkpoints", "step-1", "shared.bin"))
        self.walls = Walls([self.at("job", "work"), self.checkpoints])
        self.wanted = Filter(walls=self.walls)

    def steal(self, *names):
        path = self.at("job", "checkpoints", *names)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(self.at("host", "secret.txt"), path)

    def test_leave_out_what_links_lead_to_outside(self):
        self.steal("step-1", "stolen.bin")
        os.symlink(self.at("host"), self.at("job", "checkpoints", "folder"))
        tree = scan(self.checkpoints, self.wanted)
        self.assertEqual(sorted(tree.files), ["step-1/own.bin", "step-1/shared.bin"])
        self.assertEqual(tree.links, {"latest": "step-1"})
        self.assertIn("step-1/stolen.bin", scan(self.checkpoints).files)
        for path in ("step-1/stolen.bin", "folder", "folder/secret.txt"):
            self.assertEqual(scan_declared(self.checkpoints, path, self.walls).files, {})
        self.assertEqual(sorted(scan_declared(self.checkpoints, "step-1", self.walls).files), sorted(tree.files))

    def test_are_empty_when_their_directory_leads_out(self):
        os.symlink(self.at("host"), self.at("job", "work", "checkpoints"))
        self.assertEqual(scan(self.at("job", "work", "checkpoints"), self.wanted).files, {})

    def test_are_staged_and_held_without_following_a_link_that_comes_after_the_look(self):
        self.write("job/checkpoints/step-1/data.sqlite", "SQLite format 3\0")
        tree = scan_declared(self.checkpoints, "step-1", self.walls)
        for path in ("step-1/own.bin", "step-1/data.sqlite"):
            one = select_declared(tree._replace(files={path: tree.files[path]}), path, 1)
            self.steal(*path.split("/"))
            for is_copied in (False, True):
                staged = Staged(self.at("staged"), self.walls)
                with self.assertRaises(OutsideWalls):
                    stage(staged, self.checkpoints, one, is_copied, lambda _: False)
            self.assertFalse(Hold(self.at("held"), self.walls).take(self.checkpoints, one))
            self.assertFalse(os.path.exists(self.at("held", *path.split("/"))))

    def test_a_database_is_staged_with_its_journal_and_only_from_inside(self):
        inside, outside = self.at("job", "checkpoints", "step-1", "data.sqlite"), self.at("host", "data.sqlite")
        for path in (inside, outside):
            database = sqlite3.connect(path)
            self.addCleanup(database.close)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE steps (step)")
            database.execute("INSERT INTO steps VALUES (7)")
            database.commit()
        tree = scan_declared(self.checkpoints, "step-1", self.walls)
        selection = select_declared(tree, "step-1", 1)
        staged = Staged(self.at("staged"), self.walls)
        stage(staged, self.checkpoints, selection, False, lambda _: False)
        self.assertEqual(sorted(staged.stamps), ["step-1/data.sqlite", "step-1/own.bin", "step-1/shared.bin"])
        with closing(sqlite3.connect(staged.path("step-1/data.sqlite"))) as copy:
            self.assertEqual(copy.execute("SELECT step FROM steps").fetchall(), [(7,)])
        os.unlink(inside)
        os.symlink(outside, inside)
        self.assertRaises(OutsideWalls, staged.add_database, "stolen.sqlite", inside)
        self.assertFalse(os.path.exists(staged.path("stolen.sqlite")))
