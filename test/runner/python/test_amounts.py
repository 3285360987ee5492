import unittest

from support import RUNNER  # noqa: F401

from crucible_runner.amounts import in_bytes


class InBytesTest(unittest.TestCase):
    def test_has_a_unit_that_fits(self):
        for count, words in ((0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (999_949, "999.9 kB")):
            self.assertEqual(in_bytes(count), words)
        for count, words in ((999_950, "1.0 MB"), (2_500_000_000, "2.5 GB"), (10**16, "10000.0 TB")):
            self.assertEqual(in_bytes(count), words)
