"""The shell that runs the user's commands."""

import os
import re
import shutil
from typing import List, Optional

# Any failing line, and any failing part of a pipe, ends the command with its exit code.
STRICT = "bash -eo pipefail"
# Used without bash.
PLAIN = "sh -e"
_SHELLS = {"ash", "bash", "dash", "ksh", "sh", "zsh"}
# In the last line: it starts a program in the background, which the shell would not wait for.
_ENDS_IN_BACKGROUND = re.compile(r"(?:^|[^&>|;\\])&[ \t]*(?:#|$)")
_WAIT = '[ -z "${!-}" ] || wait "$!"'


def shell_words(wanted: Optional[str], path: str) -> List[str]:
    """Returns the program that runs commands, with its options: the wanted one, or the strictest one on the search path."""
    if wanted is None:
        wanted = STRICT if shutil.which("bash", path=path) is not None else PLAIN
    return wanted.split() + ["-c"]


def with_wait(text: str, wanted: Optional[str]) -> str:
    """Returns the command; if its last line starts a program in the background, the command waits for that program."""
    name = "sh" if wanted is None else os.path.basename(wanted.split()[0])
    if name not in _SHELLS or not _ENDS_IN_BACKGROUND.search(text.rstrip().rpartition("\n")[2]):
        return text
    return text.rstrip() + "\n" + _WAIT
