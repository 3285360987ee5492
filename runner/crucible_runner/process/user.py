"""The user that the commands of a job run as, where the machine's worker is root: one of its own, without rights and without a name."""

import ctypes
import glob
import json
import os
import shlex
import stat
import sys
from typing import Dict, List, Mapping, Optional, Tuple

_PR_SET_NO_NEW_PRIVS = 38
# The setting of the workers that turns it off, for messages.
SETTING = "CRUCIBLE_LOCAL_UIDS"
_DEVICES = ("/dev/nvidia*", "/dev/dri/*")
# Words of a shell after which a command comes, beside its operators.
_BEFORE_COMMANDS = {"!", "do", "else", "elif", "env", "exec", "if", "nohup", "then", "time", "until", "while", "{"}
_REFUSALS = ("Permission denied", "EACCES", "Operation not permitted", "are you root", "must be root")


def groups_of_devices(environment: Mapping[str, str]) -> List[int]:
    """The groups that a command needs to reach the GPUs that it was given. Most systems let everybody use them."""
    found = set()
    if environment.get("CUDA_VISIBLE_DEVICES"):
        for path in (path for pattern in _DEVICES for path in glob.glob(pattern)):
            status = os.stat(path)
            is_open = status.st_mode & stat.S_IWOTH
            if stat.S_ISCHR(status.st_mode) and status.st_gid != 0 and status.st_mode & stat.S_IWGRP and not is_open:
                found.add(status.st_gid)
    return sorted(found)


def become(user: int, groups: List[int]) -> None:
    """From now on this process is the user, for good: neither it nor what it starts can get rights back."""
    os.setgroups(groups)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    zero = ctypes.c_ulong(0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(ctypes.c_int(_PR_SET_NO_NEW_PRIVS), ctypes.c_ulong(1), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), "new privileges cannot be ruled out")


def give(top: str, user: int) -> None:
    """Makes the user the owner of a directory with its content; of links themselves, not of what they lead to. Only for what
    no command of the job can change at the same time: it could put a hard link there to a file that is not its own."""
    for _, folders, files, descriptor in os.fwalk(top, follow_symlinks=False):
        os.fchown(descriptor, user, user)
        for name in folders + files:
            os.chown(name, user, user, dir_fd=descriptor, follow_symlinks=False)


def environment_file(environment: Mapping[str, str]) -> int:
    """A descriptor of a file in memory that holds the environment. What starts the command is root, and must not be started
    with variables such as LD_PRELOAD that the job has chosen."""
    descriptor = os.memfd_create("environment", os.MFD_CLOEXEC)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape", closefd=False) as file:
        json.dump(dict(environment), file)
    return descriptor


def read_environment(descriptor: int) -> Dict[str, str]:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as file:
        return json.load(file)


def why_unreachable(script: str, user: int) -> Optional[str]:
    """Names a program of a shell script that exists and that the user may not run, which the shell would only call "Permission
    denied"; None without any."""
    named = [path for path in _programs_of(script) if os.path.isfile(path) and os.access(path, os.X_OK)]
    for path in named:
        if not _may_run(path, user):
            return (
                "the command names %s, which the user of this job (uid %d) may not run: put it where all users may read, name an "
                "image, or set %s=no for the workers to run jobs as root" % (path, user, SETTING)
            )
    return None


def _programs_of(script: str) -> List[str]:
    """The absolute paths in the places of commands, as far as that can be known without a shell."""
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
        pass  # the shell will say what is wrong with it
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
    """What to say after a command failed, where the last lines of its errors speak of rights."""
    if not any(words in line for line in lines for words in _REFUSALS):
        return None
    return (
        "the commands of this job run as a user of their own (uid %d), not as root, and may write to its directories only; to change "
        "the system in setup, name an image, or set %s=no for the workers" % (user, SETTING)
    )


def parse_user(text: str) -> int:
    """Raises `ValueError` for what is no user that a command can be given."""
    user = int(text)
    if not (sys.platform.startswith("linux") and 0 < user < 2**31):
        raise ValueError("%s is no user for commands" % text)
    return user


def variables(home: str, scratch: str, path: str) -> Tuple[Tuple[str, str], ...]:
    """Its place and its name in the environment of a command."""
    return (
        ("HOME", home),
        ("TMPDIR", scratch),
        ("USER", "crucible"),
        ("LOGNAME", "crucible"),
        # Where `pip install` puts programs if it may not write to the system.
        ("PATH", os.path.join(home, ".local", "bin") + os.pathsep + path),
    )
