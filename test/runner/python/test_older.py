"""What the program still keeps comes along: the older checkpoints next to the newest one."""

import os
import shutil

from support import FolderTest
from test_checkpoints import UploadingTest

from crucible_runner.checkpoint.restore import Restorer
from crucible_runner.checkpoint.scan import Tree, FileStamp, select, select_declared
from crucible_runner.documents import MANIFEST, parse
from crucible_runner.keys import CheckpointId, stored_at
from crucible_runner.store.retry import Patience


class RestoringTest(UploadingTest):
    def settle(self, ticks=6):
        """Looks until nothing is left to do; the steps uploaded."""
        steps = []
        for _ in range(ticks):
            step = self.tick()
            steps += [step] if step is not None else []
            while self.checkpoints._find() is None and (
                self.checkpoints._refresh_databases() or self.checkpoints._complete_older()
            ):
                pass
        return steps

    def newest_manifest(self, step):
        revision, body = 1, None
        while True:
            found = self.store.get(self.keys.manifest(CheckpointId(step, 2), revision))
            if found is None:
                return parse(MANIFEST, body)
            revision, body = revision + 1, found

    def listed(self, step, is_older):
        files = self.newest_manifest(step)["files"]
        return [each["path"] for each in files if each.get("isOlder", False) is is_older]

    def delete(self, name):
        shutil.rmtree(self.at("machine", "checkpoints", name))

    def restore(self, into="next"):
        os.makedirs(self.at(into))
        restorer = Restorer(self.store, self.keys, "job-a", Patience(lambda: False, lambda: False))
        found = restorer.restore(3, self.at(into), self.at("part"), self.clock, self.remarks.append)
        return found, sorted(
            os.path.relpath(os.path.join(folder, name), self.at(into))
            for folder, _, names in os.walk(self.at(into))
            for name in names
        )



class OlderTest(RestoringTest):
    def test_the_units_that_the_program_keeps_are_restored_with_the_newest(self):
        self.begin()
        for step in (10, 20, 30):
            self.save("checkpoint-%d/model.pt" % step, "weights of %d" % step)
            self.assertEqual(self.settle(), [step])
        self.assertEqual(self.listed(30, True), ["checkpoint-10/model.pt", "checkpoint-20/model.pt"])
        self.assertEqual(self.listed(30, False), ["checkpoint-30/model.pt"])
        found, names = self.restore()
        self.assertEqual(names, ["checkpoint-%d/model.pt" % step for step in (10, 20, 30)])
        self.assertEqual(found.restored.resume_path, "checkpoint-30")

    def test_nothing_of_an_older_unit_is_uploaded_twice(self):
        self.begin()
        for step in (10, 20, 30):
            self.save("checkpoint-%d/model.pt" % step, "weights")
            self.settle()
        places = [each["storedAt"] for each in self.newest_manifest(30)["files"] if each.get("isOlder")]
        self.assertEqual(places, ["%012d-2/files/checkpoint-%d/model.pt" % (step, step) for step in (10, 20)])
        self.assertEqual(self.newest_manifest(30)["totalBytes"], len("weights"))

    def test_what_the_program_deletes_after_its_save_does_not_come_back(self):
        self.begin()
        for step in (10, 20, 30):
            self.save("checkpoint-%d/model.pt" % step)
            self.settle()
        # The best one, and the newest: the rotation of a Trainer.
        self.delete("checkpoint-20")
        self.settle()
        self.assertEqual(self.listed(30, True), ["checkpoint-10/model.pt"])
        self.assertEqual(self.newest_manifest(30)["revision"], 2)

    def test_a_unit_that_was_passed_over_is_uploaded_after_the_newest(self):
        self.begin(every_ms=3_600_000)
        self.save("checkpoint-10/model.pt")
        self.assertEqual(self.settle(), [10])
        for step in (20, 30):
            self.save("checkpoint-%d/model.pt" % step)
            self.assertEqual(self.settle(), [])
        self.checkpoints.hurry()
        self.assertEqual(self.settle(), [30])
        self.assertEqual(self.listed(30, True), ["checkpoint-10/model.pt", "checkpoint-20/model.pt"])
        self.assertEqual(self.manifest(30)["revision"], 1)
        self.assertEqual([each["path"] for each in self.manifest(30)["files"]], ["checkpoint-10/model.pt", "checkpoint-30/model.pt"])

    def test_half_of_an_older_unit_is_left_out(self):
        self.begin()
        self.save("checkpoint-10/model.pt")
        self.save("checkpoint-10/optimizer.pt")
        self.save("checkpoint-20/model.pt")
        self.save("checkpoint-20/optimizer.pt")
        add = self.checkpoints._scanner.walls.opened
        gone = os.path.join(self.paths.checkpoints, "checkpoint-10", "optimizer.pt")

        def opened(path):
            if path == gone:
                raise FileNotFoundError(path)
            return add(path)

        self.scanner.walls.opened = opened
        self.addCleanup(delattr, self.scanner.walls, "opened")
        self.assertEqual(self.settle(), [20])
        self.assertEqual(self.listed(20, True), [])

    def test_the_next_attempt_keeps_them_without_an_upload(self):
        self.begin()
        for step in (10, 20):
            self.save("checkpoint-%d/model.pt" % step)
            self.settle()
        found, _ = self.restore()
        self.assertEqual(
            [(each["path"], each["storedAt"]) for each in found.restored.entries],
            [("checkpoint-%d/model.pt" % step, "%012d-2/files/checkpoint-%d/model.pt" % (step, step)) for step in (10, 20)],
        )

    def test_a_damaged_older_unit_is_left_out_and_named(self):
        self.begin()
        for step in (10, 20, 30):
            self.save("checkpoint-%d/model.pt" % step)
            self.settle()
        self.store.delete(self.keys.stored_file(stored_at(CheckpointId(10, 2), "checkpoint-10/model.pt")))
        found, names = self.restore()
        self.assertEqual(names, ["checkpoint-20/model.pt", "checkpoint-30/model.pt"])
        self.assertEqual(found.restored.checkpoint, CheckpointId(30, 2))
        self.assertRegex("\n".join(self.remarks), "checkpoint-10, which the program had kept, is damaged and not restored")

    def test_the_end_of_the_program_stores_them_too(self):
        self.begin(every_ms=3_600_000)
        for step in (10, 20, 30):
            self.save("checkpoint-%d/model.pt" % step)
            self.clock.advance(100)
            self.scanner.scan()
        self.finish(True)
        self.assertEqual(self.listed(30, True), ["checkpoint-10/model.pt", "checkpoint-20/model.pt"])


class SelectOlderTest(FolderTest):
    def tree(self, **files):
        stamps = {
            path.replace("__", "/"): FileStamp(1, at, index, 1, 0o644) for index, (path, at) in enumerate(files.items())
        }
        return Tree(stamps, {})

    def test_an_older_checkpoint_has_only_what_is_older_still(self):
        tree = self.tree(step_1__a=1, step_2__a=2, step_3__a=3)
        newest, middle, oldest = select(tree, frozenset())
        self.assertEqual(sorted(newest.older), ["step_1/a", "step_2/a"])
        self.assertEqual(sorted(middle.older), ["step_1/a"])
        self.assertEqual(sorted(oldest.older), [])

    def test_a_declared_checkpoint_comes_with_what_was_finished_when_it_was_declared(self):
        around = self.tree(step_1__a=1, step_2__a=2, step_3__a=3, step_3__b=1, settings=1)
        declared = Tree({"step_2/a": around.files["step_2/a"]}, {})
        selection = select_declared(declared, "step_2", 2, around, 2)
        self.assertEqual(sorted(selection.older), ["settings", "step_1/a"])
