"""A Python environment of the job's own, on systems whose Python refuses `pip install` (PEP 668: Debian 12, Ubuntu 24.04 and later)."""

import os
import shlex
import shutil
import subprocess
from typing import Mapping, Optional

from ..paths import remove_tree

# Making the environment takes a tenth of a second.
_PATIENCE_SECONDS = 60.0

# A Python that runs in a virtual environment, or that the system does not manage, needs none. The new one sees the system's packages.
_MAKE = """
import os, sys, sysconfig, venv
marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
if sys.prefix == sys.base_prefix and os.path.exists(marker):
    venv.EnvBuilder(system_site_packages=True, symlinks=True).create(sys.argv[1])
"""


def make_own_python(folder: str, own: Mapping[str, str]) -> Optional[str]:
    """Makes a virtual environment in the empty folder if the Python of the search path is managed by the system. `pip install` puts packages
    there, next to the system's own ones. Returns why it cannot be made; None if it was made or is not needed."""
    python = shutil.which("python3", path=own.get("PATH", os.defpath))
    if python is None:
        return None
    environment = {name: value for name, value in own.items() if name in ("PATH", "LD_LIBRARY_PATH", "HOME", "LANG")}
    try:
        made = subprocess.run(
            [python, "-c", _MAKE, folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=_PATIENCE_SECONDS,
        )
        if made.returncode == 0:
            programs = os.path.join(folder, "bin")
            if os.path.isdir(programs):
                _add_pip(programs)
            return None
        why = made.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
    except (OSError, subprocess.SubprocessError) as error:
        why = str(error)
    remove_tree(folder)
    os.makedirs(folder)
    return why


def _add_pip(programs: str) -> None:
    """Adds programs that call the system's pip with the environment's Python. Debian and Ubuntu keep the files for a second pip in a package
    of its own (python3-venv), which most images lack."""
    python = shlex.quote(os.path.join(programs, "python3"))
    for name in ("pip", "pip3"):
        path = os.path.join(programs, name)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write('#!/bin/sh\nexec %s -m pip "$@"\n' % python)
        os.chmod(path, 0o755)
