"""A dedicated user without privileges and without a name, which runs the commands of a job when the machine's worker is root."""

import ctypes
import glob
import json
import os
import shlex
import stat
import sys
from typing import Dict, List, Mapping, Optional, Tuple

_PR_SET_NO_NEW_PRIVS = 38
# The worker setting that turns this off, for messages.
SETTING = "CRUCIBLE_LOCAL_UIDS"
_DEVICES = ("/dev/nvidia*", "/dev/dri/*")
# Shell words before a command, in addition to the shell's operators.
_BEFORE_COMMANDS = {"!", "do", "else", "elif", "env", "exec", "if", "nohup", "then", "time", "until", "while", "{"}
_REFUSALS = ("Permission denied", "EACCES", "Operation not permitted", "are you root", "must be root")


def groups_of_devices(environment: Mapping[str, str]) -> List[int]:
    """Returns the groups that a command needs to access its assigned GPUs. Most systems let every user access them."""
    found = set()
    if environment.get("CUDA_VISIBLE_DEVICES"):
        for path in (path for pattern in _DEVICES for path in glob.glob(pattern)):
            status = os.stat(path)
            is_open = status.st_mode & stat.S_IWOTH
            if stat.S_ISCHR(status.st_mode) and status.st_gid != 0 and status.st_mode & stat.S_IWGRP and not is_open:
                found.add(status.st_gid)
    return sorted(found)


def become(user: int, groups: List[int]) -> None:
    """Switches this process to the user permanently: neither it nor its children can regain privileges."""
    os.setgroups(groups)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    zero = ctypes.c_ulong(0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(ctypes.c_int(_PR_SET_NO_NEW_PRIVS), ctypes.c_ulong(1), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), "new privileges cannot be prevented")


def give(top: str, user: int) -> None:
    """Makes the user the owner of a directory with its content; links themselves change owner, their targets do not. Only for content that
    no command of the job can change at the same time: a command could add a hard link to a foreign file."""
    for _, folders, files, descriptor in os.fwalk(top, follow_symlinks=False):
        os.fchown(descriptor, user, user)
        for name in folders + files:
            os.chown(name, user, user, dir_fd=descriptor, follow_symlinks=False)


def environment_file(environment: Mapping[str, str]) -> int:
    """Returns a descriptor of an in-memory file with the environment. The process that starts the command is root, and must not be started
    with variables such as LD_PRELOAD from the job."""
    descriptor = os.memfd_create("environment", os.MFD_CLOEXEC)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape", closefd=False) as file:
        json.dump(dict(environment), file)
    return descriptor


def read_environment(descriptor: int) -> Dict[str, str]:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as file:
        return json.load(file)


def why_unreachable(script: str, user: int) -> Optional[str]:
    """Returns an existing program of a shell script that the user may not execute, where the shell would only report "Permission denied";
    None without any."""
    named = [path for path in _programs_of(script) if os.path.isfile(path) and os.access(path, os.X_OK)]
    for path in named:
        if not _may_run(path, user):
            return (
                "the command names %s, which the user of this job (uid %d) may not run: put it where all users may read, name an "
                "image, or set %s=no for the workers to run jobs as root" % (path, user, SETTING)
            )
    return None


def _programs_of(script: str) -> List[str]:
    """Returns the absolute paths at command positions, as far as they can be found without a shell."""
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found, is_command = [], True
    try:
        for word in lexer:
            if set(word) <= set(";&|()") or word in _BEFORE_COMMANDS:
                is_command = True
            elif is_command and "=" not in word.partition("/")[0]:
                found += [word] if word.startswith("/") else []
                is_command = False
    except ValueError:
        pass  # the shell will report the syntax error
    return found


def _may_run(path: str, user: int) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            become(user, [])
            code = 0 if os.access(path, os.X_OK) else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def hint_of(lines: List[str], user: int) -> Optional[str]:
    """Returns a hint for a failed command whose last error lines mention permissions."""
    if not any(words in line for line in lines for words in _REFUSALS):
        return None
    return (
        "the commands of this job run as a separate user (uid %d), not as root, and may write to its directories only; to change "
        "the system in setup, name an image, or set %s=no for the workers" % (user, SETTING)
    )


def parse_user(text: str) -> int:
    """Raises `ValueError` for a user id that a command cannot run as."""
    user = int(text)
    if not (sys.platform.startswith("linux") and 0 < user < 2**31):
        raise ValueError("user %s cannot run commands" % text)
    return user


def variables(home: str, scratch: str, path: str) -> Tuple[Tuple[str, str], ...]:
    """Returns the variables for the user's directory and name in a command's environment."""
    return (
        ("HOME", home),
        ("TMPDIR", scratch),
        ("USER", "crucible"),
        ("LOGNAME", "crucible"),
        # `pip install` puts programs here if it may not write to the system.
        ("PATH", os.path.join(home, ".local", "bin") + os.pathsep + path),
    )
