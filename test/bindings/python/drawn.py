"""Reads answers of the command line, a call of `Truffle` and its output on each line, and prints what became of each."""

import json
import sys
from typing import Any, Tuple

from truffle import CrucibleError, Results, Truffle
from truffle.cli import Document, Program
from typed import of_row


class Recorded(Program):
    """A command line that has already answered."""

    stdout: str
    code: int

    def ask(self, *args: str, input: Any = None) -> Tuple[Document, int]:
        return self._read(args, self.stdout, "", self.code), self.code


tf = Truffle()
tf._program = Recorded("truffle")
for line in sys.stdin:
    drawn = json.loads(line)
    object.__setattr__(tf._program, "stdout", drawn["stdout"])
    object.__setattr__(tf._program, "code", drawn["code"])
    try:
        answer = eval(drawn["call"])
        rows = answer if isinstance(answer, Results) else [] if isinstance(answer, str) else [answer]
        found = {"rows": len(rows), "problems": [one for row in rows for one in of_row(row)]}
        if hasattr(answer, "_repr_html_"):
            answer._repr_html_()
    except CrucibleError as error:
        found = {"error": type(error).__name__}
    print(json.dumps(found))
