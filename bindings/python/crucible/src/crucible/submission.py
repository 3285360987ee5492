"""Submissions: source text, a script, a command, a job file or an earlier job, with requirements and files."""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from truffle.errors import UsageError

from . import checks
from .calls import options
from .errors import CrucibleWarning
from .own_paths import in_own_paths
from .requirements import JOB_FILE, Requirements, flags, job_file

PathLike = Union[str, os.PathLike[str]]
Files = Union[Mapping[str, PathLike], Sequence[PathLike]]
Secrets = Union[str, Sequence[str], Mapping[str, str]]

#: Frames between the line that calls an operation and the functions that the operation calls.
STACK_OF_OPERATION = 5

#: The program of ``code=``, on the machine.
PROGRAM = "main.py"


@dataclass(frozen=True)
class Submission:
    """Arguments of `MLPlatform.submit`, which explains them."""

    code: Optional[str] = None
    script: Optional[PathLike] = None
    run: Optional[str] = None
    job_file: Optional[PathLike] = None
    from_job: Optional[str] = None
    fresh: bool = False
    args: Sequence[Any] = ()
    requirements: Requirements = field(default_factory=Requirements)
    name: Optional[str] = None
    env: Mapping[str, Any] = field(default_factory=dict)
    secrets: Secrets = field(default=(), repr=False)
    files: Files = ()
    workdir: Union[PathLike, bool, None] = None
    analyze: bool = True
    id: Optional[str] = None
    #: The files in the `workdir` that is made for a function, apart from its modules.
    copied: Optional[Files] = None

    @contextmanager
    def words(self) -> Iterator[Tuple[Tuple[str, ...], Dict[str, str]]]:
        """Arguments of the command line, and variables with the values of secrets. A folder that they name exists until the end:
        the command has sent its files by then."""
        self._check()
        names, values = secrets_of(self.secrets)
        more = {"no_analyze": not self.analyze, "id": self.id, "from": self.from_job, "fresh": self.fresh}
        env = ["%s=%s" % (name, _env(value)) for name, value in self.env.items()]
        if self.job_file is None and self._program() is None:
            over = {**flags(self.requirements.fields()), "name": self.name, "env": env, "secret": names, **self._sent()}
            yield options({**more, **over}), values
            return
        if self.job_file is not None:
            over = {**flags(self.requirements.fields()), "name": self.name, "env": env, "secret": names, **self._sent()}
            yield (checks.path(self.job_file), *options({**more, **over})), values
            return
        with tempfile.TemporaryDirectory(prefix="crucible-") as folder:
            document = {**self._document(Path(folder)), "env": {name: _env(value) for name, value in self.env.items()}}
            if names:
                document["secrets"] = names
            path = Path(folder, "%s.json" % self._stem())
            path.write_text(json.dumps(document), encoding="utf-8")
            try:
                yield (str(path), *options(more)), values
            except UsageError as error:
                told = _in_words_of_python(error, str(path))
                if self.code is not None or self.copied is not None:
                    told = in_own_paths(told, Path(folder, "work") if self.code is not None else Path(str(self.workdir)), self.copied or self.files)
                raise told from None

    def _program(self) -> Optional[str]:
        return next((name for name in ("code", "script", "run") if getattr(self, name) is not None), None)

    def _check(self) -> None:
        given = [name for name in ("code", "script", "run", "job_file") if getattr(self, name) is not None]
        if len(given) > 1:
            raise UsageError("%s cannot be submitted together." % " and ".join(given), hint="Give one of them.")
        if self.code is not None and re.fullmatch(r"\S+\.(py|ipynb|ya?ml|json|sh)", self.code.strip()):
            name = "job_file" if self.code.strip().endswith(("yml", "yaml", "json")) else "script"
            raise UsageError(
                "code=%r is the name of a file, and not the text of a program." % self.code, hint="Pass %s=%r." % (name, self.code)
            )
        if isinstance(self.workdir, (str, os.PathLike)) and not os.path.isdir(self.workdir):
            raise UsageError("There is no folder %s in %s." % (os.fspath(self.workdir), os.getcwd()), hint="Correct workdir=.")
        if not given and self.from_job is None:
            raise UsageError(
                "Nothing to submit.", hint="Give code=, script=, run= or job_file=, or from_job= to continue an earlier job."
            )
        if self.files and self.code is None:
            raise UsageError("files= requires code=.", hint="To send a whole folder, name it with workdir=.")
        if self.code is not None and self.workdir is not None:
            raise UsageError("workdir= cannot be combined with code=, which has its own folder.", hint="Name files=.")
        if self.args and self.code is None and self.script is None:
            raise UsageError("args= requires code= or script=.", hint="Write them into the command.")

    def _sent(self) -> Dict[str, Any]:
        if self.workdir is None or self.workdir is True:
            return {}
        return {"workdir": "none" if self.workdir is False else os.fspath(self.workdir)}

    def _stem(self) -> str:
        return Path(self.script).stem if self.script is not None else "job"

    def _document(self, folder: Path) -> Dict[str, Any]:
        """The job file; the program and files of ``code=`` are written below the folder."""
        document = job_file(self.requirements.fields())
        if self.name is not None:
            document["name"] = self.name
        if self.code is not None:
            work = folder / "work"
            work.mkdir()
            copy_files(self.files, work)
            (work / PROGRAM).write_text(self.code, encoding="utf-8")
            return {**document, "workdir": str(work), "run": _python(PROGRAM, self.args)}
        if self.run is not None:
            return {**document, "run": self.run, "workdir": self._folder(os.getcwd())}
        script = Path(os.fspath(self.script or "")).resolve()
        if not script.is_file():
            near = difflib.get_close_matches(script.name, os.listdir(script.parent) if script.parent.is_dir() else [], n=1)
            hint = "Did you mean %s?" % near[0] if near else "Name the script by its path."
            raise UsageError("There is no file %s in %s." % (self.script, os.getcwd()), hint=hint)
        # As on the command line, a script below this folder runs in it, another one in its own.
        base = self._folder(os.getcwd())
        is_inside = isinstance(base, str) and Path(base).resolve() in script.parents
        if isinstance(self.workdir, (str, os.PathLike)) and not is_inside:
            raise UsageError("%s is not below workdir=%r." % (self.script, os.fspath(self.workdir)), hint="Give the folder that has it.")
        inside = Path(base) if isinstance(base, str) and is_inside else script.parent
        return {
            **document,
            "workdir": base if base is False else str(inside),
            "run": _python(os.path.relpath(script, inside.resolve()), self.args),
        }

    def _folder(self, default: str) -> Union[str, bool]:
        if self.workdir is False:
            return False
        return os.path.abspath(default if self.workdir is None or self.workdir is True else os.fspath(self.workdir))


def warned(document: Mapping[str, Any]) -> Tuple[str, ...]:
    """The warnings of a submission; each is also a `CrucibleWarning`."""
    texts = list(document["warnings"])
    if not document.get("isServed", True):
        texts.append("No worker is running, so the job waits. Start one with `crucible dev` or `crucible worker`.")
    for text in texts:
        warnings.warn(text, CrucibleWarning, stacklevel=STACK_OF_OPERATION)
    return tuple(texts)


def copy_files(files: Files, work: Path) -> None:
    """Copies files and folders below a folder, under their own names or those of the mapping."""
    pairs = files.items() if isinstance(files, Mapping) else [(Path(one).name, one) for one in files]
    for name, path in pairs:
        source, target = Path(path), work / name
        if work not in target.resolve().parents or target.name == PROGRAM and target.parent == work:
            raise UsageError("A file cannot be sent as %s." % name, hint="Name a path below the folder, other than %s." % PROGRAM)
        if not source.exists():
            raise UsageError("There is no file %s to send." % path, hint="Paths are relative to %s." % os.getcwd())
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(str(source), str(target), ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(str(source), str(target))


def _python(script: str, args: Sequence[Any]) -> str:
    return shlex.join(["python3", checks.path(script), *(str(one) for one in args)])


def _env(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def secrets_of(secrets: Secrets) -> Tuple[List[str], Dict[str, str]]:
    """Their names, and the values of those that are given here instead of in the environment."""
    if isinstance(secrets, str):
        return [secrets], {}
    return list(secrets), dict(secrets) if isinstance(secrets, Mapping) else {}


#: Names in the job file of the values here.
_NAMES = {".".join(path): name for name, path in JOB_FILE.items()}


def _in_words_of_python(error: UsageError, path: str) -> UsageError:
    """The error about the job file that this module wrote, with the names of the arguments instead of its lines."""
    problems: List[Any] = list(error.details.get("problems") or ())
    texts = []
    for problem in problems:
        if not isinstance(problem, Mapping):
            return error
        at = str(problem.get("path") or "")
        shown = next((name + at[len(there) :] for there, name in _NAMES.items() if at == there or at.startswith(there + ".")), at)
        remedy = problem.get("remedy")
        texts.append("%s: %s%s." % (shown or "job", problem.get("message"), "" if not remedy else "; " + str(remedy)))
    if not texts:
        message = re.sub(re.escape(path) + r"(:\d+)*:?\s*", "", error.message)
        return UsageError(message, hint=error.hint, details=error.details)
    return UsageError("\n".join(texts), hint=error.hint, details=error.details)
