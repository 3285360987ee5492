"""Finds the cause of a failure in the last lines of a command's output, and what to do about it. Pure."""

import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_LINE_MAX = 240
_NEAR_END = 20

# Lines that follow a failure without saying anything about it.
_NOTICE = re.compile(
    r"""^(?:
        \[notice\] | npm\ notice | wandb:\ (?!ERROR) | WARNING: | W: | DEPRECATION:
        | Traceback\ \( | During\ handling\ of\ the\ above | The\ above\ exception\ was
        | File\ "[^"]*",\ line\ \d+ | [\^~\s]+$ | [-=*_#.\s]+$
        | note:\ This\ | hint:\ See\ above | \[\d+\]:$ | Failures:$ | Root\ Cause | <NO_OTHER_FAILURES>
        | (?:time|host|rank|exitcode|error_file|traceback)\s*:\ | \S+\ FAILED$
        | N:\ | ERROR\ conda\.cli | make(?:\[\d+\])?:\ \*\*\* | srun:\ error:.*Exited\ with
    )""",
    re.VERBOSE,
)
# Lines of a program that unpacks a download which has failed.
_UNPACKING = re.compile(
    r"(?:tar|gzip|zcat|xz|unzip): .*(?:not recoverable|unexpected end|returned status|not look like)"
)
# The last line of a Python traceback.
_EXCEPTION = re.compile(r"^(?:\[rank\d+\]:\s*)?(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)\b(?:: .*)?$")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):$")
# Exceptions that only pass on the failure of another program.
_PASSED_ON = re.compile(
    r"ChildFailedError|CalledProcessError|ProcessExitedException|ProcessRaisedException|SystemExit|KeyboardInterrupt"
)
# The message of an exception may have this many lines more.
_MESSAGE_LINES = 5


class _Known(NamedTuple):
    pattern: "re.Pattern[str]"
    advice: str
    pairs: "Sequence[Tuple[re.Pattern[str], re.Pattern[str]]]"
    """Also the cause: a line in which the second expression follows the first. `first.*second` would take quadratic time."""
    beside: "Optional[re.Pattern[str]]" = None
    """Another line must match this."""

    def is_in(self, line: str) -> bool:
        return self.pattern.search(line) is not None or any(_follows(line, *pair) for pair in self.pairs)


def _follows(line: str, first: "re.Pattern[str]", second: "re.Pattern[str]") -> bool:
    found = first.search(line)
    return found is not None and second.search(line, found.end()) is not None


def _known(pattern: str, advice: str, *pairs: Tuple[str, str]) -> _Known:
    return _Known(re.compile(pattern), advice, [(re.compile(first), re.compile(second)) for first, second in pairs])


# Matches nothing.
_PAIRS_ONLY = r"(?!)"
_FULL = r"No space left on device|\[Errno 28\]|ENOSPC(?!: System limit)"
_SHARED_MEMORY = "the shared memory is full: set `shm` or `memory` under `resources`, or use fewer workers"
_DISK = _known(_FULL, "the disk is full, or has no room for more files: ask for more with `disk`, or keep fewer checkpoints")

# The cause is the line that matches. Of several matches the first rule counts.
_CAUSES = (
    _known(
        r"\\r(?:'|’): (?:command not found|No such file)|\^M: bad interpreter",
        "the script has Windows line endings: save it with Unix ones",
    ),
    _known(
        r"CUDA out of memory|OutOfMemoryError: CUDA|RESOURCE_EXHAUSTED: Out of memory|OOM when allocating tensor"
        r"|CUBLAS_STATUS_ALLOC_FAILED",
        "the memory of the GPU is full: use a smaller batch, or ask for more with `gpu_memory`",
    ),
    _known(
        r"NVIDIA driver on your system is too old|CUDA driver version is insufficient",
        "the program was built for a newer CUDA than the driver of the machine supports: install an older build or use an image",
    ),
    _known(
        r"no kernel image is available for execution",
        "this build of the program does not support the GPU: install one for its architecture",
    ),
    _known(
        r"Found no NVIDIA driver|No CUDA GPUs are available|Torch not compiled with CUDA enabled|no CUDA-capable device is detected",
        "the program found no usable GPU: ask for one with `gpus`, and install a build with CUDA",
    ),
    _known(
        r"Driver/library version mismatch|NVML_ERROR_LIB_RM_VERSION_MISMATCH|uncorrectable (?:ECC|NVLink) error|fallen off the bus",
        "the GPU or its driver is in a bad state: try another machine, or restart this one",
    ),
    _known(
        r"CUDA error: (?:an illegal memory access|unspecified launch failure|misaligned address)",
        "a kernel of the program failed: CUDA_LAUNCH_BLOCKING=1 shows where",
    ),
    _known(
        r"device-side assert triggered",
        "most likely an index or a label is out of range: CUDA_LAUNCH_BLOCKING=1 shows where",
    ),
    _known(
        r"insufficient shared memory",
        "the workers of the data loader need more memory: set `shm` or `memory` under `resources`, or use fewer workers",
        (r"DataLoader worker", r"killed by signal: (?:Bus error|Killed)"),
    ),
    _known(
        _PAIRS_ONLY,
        "a worker of the data loader was killed, most likely for lack of memory: ask for more with `memory`, or use fewer workers",
        (r"DataLoader worker", r"exited unexpectedly"),
    ),
    _known(
        r"oom[-_]kill(?:er)? event|\bOut Of Memory$|\bMemoryError\b|std::bad_alloc"
        r"|Cannot allocate memory|DefaultCPUAllocator: (?:can't|not enough)",
        "the memory of the machine is full: ask for more with `memory`",
        (r"Unable to allocate [\d.]", r" for an array"),
        (r": line \d+: +\d", r" Killed "),
    ),
    _known(r"unable to (?:write to|mmap|open shared memory)", _SHARED_MEMORY)._replace(beside=re.compile(r"torch_\d+_\d+")),
    _known(_FULL, _SHARED_MEMORY)._replace(beside=re.compile(r"\bSemLock\b|/dev/shm\b|torch_shm_manager")),
    _known(
        r"setting up NCCL communicator|Watchdog caught collective operation timeout|NCCL error|nccl(?:Internal|System|Remote|UnhandledCuda)Error|DistBackendError",
        "the GPUs could not communicate: another process may have failed first; NCCL_DEBUG=INFO shows more",
    ),
    _known(
        r"Disk quota exceeded|\[Errno 122\]|EDQUOT",
        "the user's quota there is used up: write to another folder, such as one below the working directory",
    ),
    _DISK,
    _known(r"DO NOT MATCH THE HASHES", "the package index sent another file than the hashes name: correct them, or try again"),
    _known(
        r"ERROR: No matching distribution found for",
        "check the name and the version, and whether it exists for the Python of the machine",
    ),
    _known(
        r"ERROR: Could not open requirements file|ERROR: Invalid requirement",
        "check that the file is in the uploaded folder and has valid contents",
    ),
    _known(
        r"error: externally-managed-environment|is externally managed, and indicates",
        "call `pip` or `python3 -m pip` without sudo, a path or `--system`: they install for this job; in an image, make a virtual environment",
    ),
    _known(
        r"ResolutionImpossible|conflicting dependencies|you have held broken packages|LibMambaUnsatisfiableError|UnsatisfiableError",
        "the wanted versions exclude each other: relax one of them",
    ),
    _known(
        r"Failed (?:to build|building wheel)|Could not build wheels|subprocess-exited-with-error",
        "a package had to be compiled and could not be: choose a version with a wheel, or install its compiler and headers first",
        (r"error: command ", r" failed"),
    ),
    _known(r"NotWritableError:", "make an environment of the job's own, such as `conda create -p ./env`"),
    _known(r"PackagesNotFoundError|ResolvePackageNotFound", "check the name and the channel of the conda package"),
    _known(
        r"Run 'conda init' before 'conda activate'",
        "begin with `source \"$(conda info --base)/etc/profile.d/conda.sh\"`",
    ),
    _known(r"E: Unable to locate package", "run `apt-get update` first, and check the name of the package"),
    _known(
        _PAIRS_ONLY,
        "the clock of the machine is wrong, or its package lists are too old: use another image",
        (r"E: Release file for ", r"is (?:expired|not valid yet)"),
    ),
    _known(_PAIRS_ONLY, "install the key of the package source first, or remove the source", (r"E: The repository ", r"is not signed")),
    _known(
        r"E: Could not (?:open|get) lock|are you root\?",
        "apt-get needs root, and no other apt-get at work: use an image that has the package",
        (r"Permission denied", r"/var/lib/(?:dpkg|apt)"),
    ),
    _known(
        r"OfflineModeIsEnabled|HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE",
        "remove HF_HUB_OFFLINE, or list the files under `inputs`",
    ),
    _known(
        r"is not a valid model identifier|RepositoryNotFoundError|RevisionNotFoundError",
        "check the name on Hugging Face; a private one needs HF_TOKEN under `secrets`",
    ),
    _known(
        r"GatedRepoError|trying to access a gated repo",
        "Hugging Face requires a token with access: put HF_TOKEN under `secrets`, and accept the terms of the model",
        (r"Access to model ", r" is restricted"),
        (r"40[13] Client Error", r"huggingface"),
    ),
    _known(
        r"CERTIFICATE_VERIFY_FAILED|SSL certificate problem",
        "a certificate is not trusted, as behind a proxy that reads connections: name the authority in SSL_CERT_FILE and REQUESTS_CA_BUNDLE",
    ),
    _known(
        r"couldn't connect to 'https://huggingface|Max retries exceeded with url|Temporary failure in name resolution"
        r"|Could not resolve host|Failed to connect to|unable to resolve host address|Temporary failure resolving|Network is unreachable",
        "a server could not be reached from the machine: try again, or list the file under `inputs`",
        (r"429 Client Error", r"huggingface"),
    ),
    _known(r"curl: \(\d+\) ", "curl downloaded nothing: check the address, or list the file under `inputs`"),
    _known(
        r"api_key not configured|No API key configured"
        r"|calling W&B API: (?:permission denied|user is not logged in)",
        "put a valid WANDB_API_KEY under `secrets`",
        (r"wandb\.errors\.", r"\bAuthenticationError"),
    ),
    _known(r"is over its data quota", "the LFS quota of the repository is used up: list its files under `inputs`"),
    _known(r"git-lfs: (?:command )?not found|git: 'lfs' is not a git command", "install git-lfs in `setup`"),
    _known(
        r"could not read Username for|Host key verification failed|Permission denied \(publickey\)",
        "the repository is private: send its code with `workdir`, or a token with `secrets`",
    ),
    _known(r"AF_UNIX path too long", "a path of a temporary file is too long: set TMPDIR to a short one"),
    _known(r"Address already in use", "another process uses this port: choose a free one"),
    _known(r"Too many open files", "raise the limit with `ulimit -n`, or use fewer workers"),
    _known(r"GLIBC(?:XX)?_[\d.]+' not found", "a program was built for a newer system: use an image with one"),
    _known(r"cannot open shared object file", "install the library in `setup`, or use an image that has it"),
    _known(
        r"undefined symbol: |dtype size changed, may indicate|_ARRAY_API not found|compiled using NumPy 1\.x cannot be run",
        "a package was built for another version of a library, such as torch or numpy: install versions that go together",
    ),
    _known(r"ModuleNotFoundError: No module named", "install it in `setup`"),
    _known(r"bad interpreter|cannot execute: required file not found", "the first line of the script names a program that the machine does not have"),
    _known(
        r"^\S+: (?:line )?(?:\d+: )?\S+: (?:command )?not found$",
        "install the program in `setup`, and check its name",
        (r"cannot start ", r"No such file"),
    ),
    _known(
        r"^\S+: (?:line )?(?:\d+: )?\S+: Permission denied$",
        "make the file executable (chmod +x), or start it with its interpreter",
    ),
    _known(r"\[Errno 13\] Permission denied", "the job's user has no right to it: use a folder below the working directory"),
    _known(r"\[Errno 30\] Read-only file system", "write to a folder below the working directory"),
    _known(r"^\S+: (?:line )?\d+: \w+: (?:unbound variable|parameter not set)", "set it under `env`"),
    _known(r"can't open file '[^']*': \[Errno 2\]", "check the name of the script, and whether it is in the uploaded folder"),
    _known(
        r"^\S+: (?:-c: )?(?:line )?\d+: (?:Syntax error|syntax error near|unexpected EOF while looking)",
        "the shell cannot read the command: check its quotes, or set `shell`",
    ),
)


def _is_notice(line: str) -> bool:
    """Whether a line says nothing about a failure."""
    return _NOTICE.match(line) is not None or _UNPACKING.match(line) is not None


def cause_of(errors: Sequence[str], lines: Sequence[str]) -> Optional[str]:
    """Returns the line of the output that tells the cause, with advice if it is a known one; `errors` are the last lines of the standard
    error output, `lines` those of both outputs."""
    shown = _plain(lines)
    found = _known_cause(shown)
    if found is not None:
        return "%s (%s)" % (_short(found[0]), found[1].advice)
    raised = [line for line in shown if _EXCEPTION.match(line) and not _PASSED_ON.search(line)]
    if raised:
        return _short(raised[-1])
    return _last(_plain(errors)) or _last(shown)


def tells_of_full_disk(lines: Sequence[str]) -> bool:
    """Whether the cause is a full disk, and not another limit with the same error."""
    found = _known_cause(_plain(lines))
    return found is not None and found[1] is _DISK


def _known_cause(shown: List[str]) -> Optional[Tuple[str, _Known]]:
    candidates = _unhandled(shown)
    for known in _CAUSES:
        if known.beside is not None and not any(known.beside.search(line) for line in shown):
            continue
        for line in reversed(candidates):
            if known.is_in(line):
                return line, known
    return None


def _unhandled(shown: List[str]) -> List[str]:
    """Returns the lines that can tell the cause. Of an output that ends with an exception, these are its last lines and the exceptions with
    a traceback before it, such as those of other ranks: the program went on after everything else."""
    ends = [index for index, line in enumerate(shown) if _EXCEPTION.match(line)]
    if not ends or _PASSED_ON.search(shown[ends[-1]]):
        return shown
    last = ends[-1]
    if len([line for line in shown[last + 1 :] if not _is_notice(line)]) > _MESSAGE_LINES:
        return shown
    found = []
    is_in_traceback = False
    for index, line in enumerate(shown[:last]):
        is_exception = _EXCEPTION.match(line) is not None
        if (is_in_traceback and is_exception) or line.startswith("wandb: ERROR"):
            found.append(line)
        is_in_traceback = (is_in_traceback and not is_exception) or _TRACEBACK.search(line) is not None
    return found + shown[last:]


def uncaught(errors: Sequence[str], lines: Sequence[str]) -> Optional[str]:
    """Returns the exception of the Python traceback with which the standard error output ends, if it is among the last lines of both
    outputs: after a handled one, a program has more to print."""
    shown = _plain(errors)
    telling = [line for line in shown if not _is_notice(line)]
    if not telling or not _EXCEPTION.match(telling[-1]) or not any(_TRACEBACK.search(line) for line in shown):
        return None
    return _short(telling[-1]) if telling[-1] in _plain(lines)[-_NEAR_END:] else None


def _last(lines: List[str]) -> Optional[str]:
    telling = [line for line in lines if not _is_notice(line)]
    return _short((telling or lines)[-1]) if lines else None


def _short(line: str) -> str:
    return line if len(line) <= _LINE_MAX else line[:_LINE_MAX] + "..."


def _plain(lines: Sequence[str]) -> List[str]:
    """Returns the lines that are not empty, without terminal colours and other control sequences."""
    plain = ["".join(char if char.isprintable() else " " for char in _COLOURS.sub("", line)).strip() for line in lines]
    return [line for line in plain if line]
