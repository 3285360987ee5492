import os
import unittest

from support import FolderTest

from crucible_runner.process.shell import shell_words, with_wait


class ShellTest(FolderTest):
    def test_is_bash_where_there_is_one(self):
        os.mkdir(self.folder + "/bin")
        self.assertEqual(shell_words(None, self.folder + "/bin"), ["sh", "-e", "-c"])
        with open(self.folder + "/bin/bash", "w") as file:
            os.chmod(file.name, 0o755)
        self.assertEqual(shell_words(None, self.folder + "/bin"), ["bash", "-eo", "pipefail", "-c"])
        self.assertEqual(shell_words("zsh -e", self.folder + "/bin"), ["zsh", "-e", "-c"])

    def test_waits_for_what_the_last_line_starts(self):
        for text in ("a &", "a & \n\n", "a; b &  # in the background", "a 2>&1 &", "&"):
            self.assertTrue(with_wait(text, None).endswith('wait "$!"'), text)
        for text in ("a && b", "a 2>&1", "a &\nb", "a &>log", "echo \\&", "for i in 1; do a & done", "case a in a) b;;& esac"):
            self.assertEqual(with_wait(text, None), text)
        self.assertEqual(with_wait("a &", "python3 -u"), "a &")


if __name__ == "__main__":
    unittest.main()
