"""The last words of a machine that cannot begin."""

import unittest

from crucible_runner.last_words import shortened


class ShortenedWords(unittest.TestCase):
    def test_short_words_are_whole(self):
        self.assertEqual(shortened("the store refuses this machine: no; ask"), "the store refuses this machine: no; ask")

    def test_long_words_end_after_a_clause(self):
        self.assertEqual(shortened("refused; asked with %s; allow the identity" % ("x" * 370)), "refused; asked with %s" % ("x" * 370))
        self.assertEqual(shortened("refused; asked with " + "x" * 500), "refused")

    def test_a_long_clause_is_cut(self):
        self.assertEqual(shortened("x" * 500), "x" * 400)


if __name__ == "__main__":
    unittest.main()
