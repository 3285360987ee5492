"""Checkpoints that are written again faster than the quiet time: what is stored is of one save, and no older than the pace allows."""

import os
import shutil

from test_checkpoints import QUIET_MS, UploadingTest

EVERY_MS = 5_000
SAVES = 60


def replaces(*names):
    return [lambda test, name=name: test.replace(name) for name in names]


def rewrites(*names):
    return [lambda test, name=name: test.rewrite(name) for name in names]


# What one save does, one step after another. A scan may fall between two of them.
OFTEN = {
    "one file, replaced": replaces("model.pt"),
    "one file, replaced, next to one that stays": [lambda test: test.once("tokenizer.model"), *replaces("model.pt")],
    "one file, replaced, next to its predecessor": [lambda test: test.move("model.pt", "last.pt"), *replaces("model.pt")],
    "one file, replaced, next to a log": [lambda test: test.append("metrics.jsonl"), *replaces("model.pt")],
    "two files, replaced": replaces("model.pt", "optimizer.pt"),
    "three files, replaced": replaces("model.pt", "optimizer.pt", "random.pt"),
    "one file, in place": rewrites("model.pt"),
    "one file, in place, in two goes": [*rewrites("model.pt"), lambda test: test.append("model.pt")],
    "two files, in place": rewrites("model.pt", "optimizer.pt"),
    "a folder, replaced": [lambda test: test.replace_folder("last", "model.pt", "optimizer.pt")],
}


class HoldTest(UploadingTest):
    def path(self, name):
        return self.at("machine", "checkpoints", name)

    def put(self, path, mode="w"):
        with open(path, mode) as file:
            file.write("%06d" % self.number)
        self.stamp(path)

    def replace(self, name):
        self.put(self.path(name + ".tmp"))
        os.replace(self.path(name + ".tmp"), self.path(name))

    def rewrite(self, name):
        self.put(self.path(name))

    def append(self, name):
        self.put(self.path(name), "a")

    def once(self, name):
        if self.number == 3:
            self.put(self.path(name))

    def move(self, old, new):
        if os.path.exists(self.path(old)):
            os.replace(self.path(old), self.path(new))

    def replace_folder(self, name, *inner):
        os.mkdir(self.path(name + ".tmp"))
        for each in inner:
            self.put(self.path(name + ".tmp/" + each))
        shutil.rmtree(self.path(name), ignore_errors=True)
        os.rename(self.path(name + ".tmp"), self.path(name))

    def into_new_folder(self, *inner):
        """Each save has a folder of its own, and the last two stay."""
        shutil.rmtree(self.path("checkpoint-%d" % (self.number - 2)), ignore_errors=True)
        os.makedirs(self.path("checkpoint-%d" % self.number), exist_ok=True)
        for each in inner:
            self.put(self.path("checkpoint-%d/%s" % (self.number, each)))

    def stored(self, step):
        """The number of the save in each file of a stored checkpoint but those that stay or keep an older state."""
        manifest = self.manifest(step)
        bodies = {
            entry["path"]: self.store.get(self.keys.stored_file(entry.get("storedAt") or "%012d-2/files/%s" % (step, entry["path"])))
            for entry in manifest["files"]
            if entry["path"] not in ("tokenizer.model", "last.pt", "metrics.jsonl")
        }
        return manifest, bodies

    def run_saves(self, steps, pause_ms):
        """Each step takes a little while, and the program trains between two saves. Returns the saves that were stored."""
        found = []
        for self.number in range(1, SAVES + 1):
            waits = [20 + 7 * (self.number % 5)] * (len(steps) - 1) + [pause_ms + 11 * (self.number % 7)]
            self.progress.see([b"step %d" % self.number])
            self.clock.advance(100)
            for step, wait_ms in zip(steps, waits):
                step(self)
                while wait_ms > 0:
                    passed_ms = min(wait_ms, 130)
                    wait_ms -= passed_ms
                    stored = self.tick(passed_ms)
                    if stored is not None:
                        found.append(self.stored(stored))
        return found

    def test_is_stored_at_the_pace_of_the_job_and_from_one_save(self):
        for name, steps in OFTEN.items():
            with self.subTest(name):
                self.setUp()
                self.begin(every_ms=EVERY_MS, pids=lambda: [os.getpid()])
                began_ms = self.clock.mono_ms()
                found = self.run_saves(steps, 400)
                duration_ms = self.clock.mono_ms() - began_ms
                self.assertGreaterEqual(len(found), duration_ms // (2 * EVERY_MS))
                for manifest, bodies in found:
                    numbers = {body[index : index + 6] for body in bodies.values() for index in range(0, len(body), 6)}
                    self.assertEqual(len(numbers), 1, bodies)
                    if manifest["isStepKnown"]:
                        self.assertEqual(int(min(numbers)), manifest["step"])
                    self.assertEqual({len(body) for body in bodies.values()}, {12 if "two goes" in name else 6})
                    self.assertEqual(manifest["state"], "complete" if name.startswith("one file, replaced") else "settled")
                newest = found[-1][0]
                self.assertLess(self.clock.wall_ms() - newest["savedAtMs"], EVERY_MS + 4 * QUIET_MS)

    def test_a_folder_that_another_one_follows_without_a_pause_is_stored_from_one_save(self):
        self.begin(every_ms=EVERY_MS, pids=lambda: [os.getpid()])
        names = ("model.pt", "optimizer.pt", "rng.pt")
        found = self.run_saves([lambda test, name=name: test.into_new_folder(name) for name in names], 90)
        self.assertGreater(len(found), 1)
        for manifest, bodies in found:
            self.assertEqual((manifest["state"], len(bodies)), ("complete", len(names)), bodies)
            self.assertEqual({int(body) for body in bodies.values()}, {manifest["step"]})

    def test_files_that_are_rewritten_without_a_pause_are_restless_and_growing_ones_are_not(self):
        self.begin(every_ms=EVERY_MS, pids=lambda: [os.getpid()])
        self.run_saves(rewrites("model.pt", "optimizer.pt"), 20)
        self.assertIsNotNone(self.scanner.saves.restless_since_ms)
        self.assertGreater(self.clock.mono_ms() - self.scanner.saves.restless_since_ms, 5_000)
        self.tick(QUIET_MS + 500)
        self.assertIsNone(self.scanner.saves.restless_since_ms)
        for self.number in range(60):
            self.append("growing.pt")
            self.tick(130)
        self.assertLess(self.clock.mono_ms() - self.scanner.saves.restless_since_ms, 500)

    def test_is_not_stored_where_a_pause_within_a_save_cannot_be_told_from_the_one_after_it(self):
        self.begin(every_ms=EVERY_MS, pids=lambda: [os.getpid()])
        steps = [*replaces("model.pt"), lambda test: None, lambda test: test.replace("optimizer.pt")]
        # The program trains for a shorter time than it takes to make the second file.
        self.assertEqual(self.run_saves(steps, 20), [])
