import json
import os
import time
import unittest

from support import FolderTest, HERE

from crucible_runner.globs import MalformedGlob, Glob, matches_any, remarks_about, search

with open(os.path.join(HERE, "..", "globs.json"), encoding="utf-8") as file:
    CORPUS = json.load(file)


def matching(glob, paths, is_hidden_matched):
    compiled = Glob(glob, is_hidden_matched)
    return [path for path in paths if compiled.matches(path)]


class GlobTest(unittest.TestCase):
    def test_a_glob_matches_what_the_shared_cases_say(self):
        for case in CORPUS["cases"] + CORPUS["unclosed"]:
            both, hidden = case["both"], case.get("checkpoint", [])
            paths = both + hidden + case.get("none", [])
            with self.subTest(case["glob"]):
                self.assertEqual(matching(case["glob"], paths, True), both + hidden)
                self.assertEqual(matching(case["glob"], paths, False), both)

    def test_a_malformed_glob_matches_nothing_and_is_spoken_of(self):
        for case in CORPUS["malformed"]:
            with self.assertRaisesRegex(MalformedGlob, case["message"].replace("*", r"\*")):
                Glob(case["glob"])
            self.assertFalse(matches_any("a", [case["glob"]]))
        self.assertTrue(matches_any("a", ["[z-a]", "a"]))
        self.assertEqual(
            remarks_about(["*.pt", "[z-a]"]),
            ["the pattern [z-a] matches nothing: it has the range z-a, which is in reverse order"],
        )

    def test_the_time_for_a_match_does_not_explode(self):
        name, path = "a" * 255, "/".join("a" * 250)
        for glob in ("*a" * 120 + "b", "a*" * 120 + "b", "?*" * 120 + "b", "[ab]*" * 90 + "c", "**/" * 100 + "b", "**a" * 8 + "b", "*/" * 120 + "b"):
            began = time.monotonic()
            self.assertFalse(matches_any(name, [glob]))
            self.assertFalse(matches_any(path, [glob]))
            self.assertLess(time.monotonic() - began, 2, glob)


class SearchTest(FolderTest):
    def names(self, globs):
        return {glob: [os.path.relpath(path, self.folder) for path in paths] for glob, paths in search(self.folder, globs).items()}

    def test_a_search_finds_what_the_globs_match(self):
        for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt", ".hidden/d.txt", "[x]/e.txt"):
            self.write(name, name)
        self.assertEqual(
            self.names(["*.txt", "**/*.txt", "sub", "sub/**", ".hidden/*", "[x]", "[[]x]", "none", "[z-a]"]),
            {
                "*.txt": ["a.txt"],
                "**/*.txt": ["[x]/e.txt", "a.txt", "sub/b.txt", "sub/deep/c.txt"],
                "sub": ["sub"],
                "sub/**": ["sub/b.txt", "sub/deep"],
                ".hidden/*": [".hidden/d.txt"],
                "[x]": [],
                "[[]x]": ["[x]"],
                "none": [],
                "[z-a]": [],
            },
        )

    def test_many_stars_over_a_deep_tree_cost_one_walk(self):
        self.write("/".join(["d"] * 22 + ["file"]), "x")
        began = time.monotonic()
        self.assertEqual(self.names(["**/" * 14 + "none", "*/**/" * 7 + "none"]), {"**/" * 14 + "none": [], "*/**/" * 7 + "none": []})
        self.assertLess(time.monotonic() - began, 2)

    def test_links_are_followed_but_not_in_circles(self):
        self.write("run/model.pt", "x")
        os.symlink("run", self.at("latest"))
        os.symlink("..", self.at("run/up"))
        for name in range(12):
            os.makedirs(self.at("ring/%d" % name))
            for other in range(12):
                os.symlink("../%d" % other, self.at("ring/%d/%d" % (name, other)))
        began = time.monotonic()
        found = self.names(["latest/*.pt", "*/model.pt", "run/up/run/model.pt", "ring/" + "*/" * 14 + "none"])
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(found["latest/*.pt"], ["latest/model.pt"])
        self.assertEqual(found["*/model.pt"], ["latest/model.pt", "run/model.pt"])
        self.assertEqual(found["run/up/run/model.pt"], [])
