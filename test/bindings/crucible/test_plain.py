"""What a job writes has no effect on a terminal or a notebook."""

import json
import re
import sys
import unittest

from crucible import JobFailed, MLPlatform
from crucible.plain import CONTROL, plain
from crucible.status import status_of
from test_status import shown
from unit_support import ROOT, InFolder

#: Sets the title, clears the screen, and hides text.
EVIL = "\x1b]0;title\x07\x1b[2Jseen\x1b[8m\u202e\x7f\x9b\tend"
SHOWN = "\u241b]0;title\u2407\u241b[2Jseen\ufffd\u2421\ufffd\tend"


class TestPlain(InFolder):
    def test_the_same_characters_are_shown_as_on_the_command_line(self):
        there = re.search(r"^const CONTROL = /(.*)/g$", (ROOT / "cli/kit/plain.ts").read_text(), re.M)
        known = re.compile(there.group(1))
        every = [chr(code) for code in range(sys.maxunicode + 1)]
        self.assertEqual([one for one in every if known.match(one)], [one for one in every if CONTROL.match(one)])

    def test_codes_are_shown_and_colours_left_out(self):
        self.assertEqual(SHOWN, plain(EVIL))
        self.assertEqual("red", plain("\x1b[31;1mred\x1b[0m"))

    def test_a_log_is_plain_as_text_and_in_a_notebook(self):
        lines = [{"attempt": 1, "n": number, "t": 0, "s": "out", "m": EVIL} for number in (1, 2)]
        (self.folder / "log.json").write_text(json.dumps({"schema": "crucible/1", "lines": lines}))
        platform = MLPlatform(self.program('case "$1" in logs) cat %s/log.json ;; *) echo "$SHOW" ;; esac' % self.folder), env={
            "SHOW": json.dumps({"schema": "crucible/1", **shown("spot")})
        })
        logs = platform.job("job-1").logs()
        self.assertEqual(SHOWN + "\n" + SHOWN, str(logs))
        self.assertIn(SHOWN, logs._repr_html_())
        self.assertIsNone(CONTROL.search(logs._repr_html_()))
        self.assertEqual(EVIL, logs.lines()[0].text)

    def test_a_status_and_an_error_are_plain(self):
        status = status_of({**shown("spot"), "message": EVIL})
        for text in (str(status), status._repr_html_(), str(JobFailed(EVIL))):
            self.assertIsNone(CONTROL.search(text))
            self.assertIn("seen", text)


if __name__ == "__main__":
    unittest.main()
