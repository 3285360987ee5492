import time
import unittest

from crucible_runner.process.causes import cause_of, tells_of_full_disk, uncaught

PIP_NOTICE = """
[notice] A new release of pip is available: 23.2.1 -> 25.3
[notice] To update, run: pip install --upgrade pip
"""
# What programs print: the output, the line that tells the cause, and a part of the advice.
CORPUS = [
    (
        """
Looking in indexes: https://pypi.org/simple
ERROR: Could not find a version that satisfies the requirement nothing-like-this (from versions: none)
ERROR: No matching distribution found for nothing-like-this
"""
        + PIP_NOTICE,
        "ERROR: No matching distribution found for nothing-like-this",
        "check the name and the version",
    ),
    (
        "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'reqs.txt'" + PIP_NOTICE,
        "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'reqs.txt'",
        "in the uploaded folder",
    ),
    (
        """
  error: subprocess-exited-with-error
  × Building wheel for flash-attn (pyproject.toml) did not run successfully.
  ╰─> [6 lines of output]
      ModuleNotFoundError: No module named 'torch'
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
ERROR: Failed building wheel for flash-attn
error: failed-wheel-build-for-install
"""
        + PIP_NOTICE,
        "ERROR: Failed building wheel for flash-attn",
        "had to be compiled",
    ),
    (
        """
error: externally-managed-environment

× This environment is externally managed
╰─> To install Python packages system-wide, try apt install
note: If you believe this is a mistake, please contact your Python installation or OS distribution provider.
hint: See PEP 668 for the detailed specification.
""",
        "error: externally-managed-environment",
        "without sudo, a path",
    ),
    (
        "error: The interpreter at /usr is externally managed, and indicates the following:\n\n  To install Python packages "
        "system-wide, try apt install",
        "error: The interpreter at /usr is externally managed, and indicates the following:",
        "--system",
    ),
    ("Reading state information...\nE: Unable to locate package libfoo-dev", "E: Unable to locate package libfoo-dev", "apt-get update"),
    (
        "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n"
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
        "needs root",
    ),
    (
        "\nCondaError: Run 'conda init' before 'conda activate'\n",
        "CondaError: Run 'conda init' before 'conda activate'",
        "profile.d/conda.sh",
    ),
    (
        """
Traceback (most recent call last):
  File "/work/train.py", line 31, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.58 GiB
wandb: 🚀 View run glad-sun-3 at: https://wandb.ai/x
wandb: Find logs at: ./wandb/run-1/logs
""",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.58 GiB",
        "smaller batch",
    ),
    (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
        "newer CUDA",
    ),
    (
        "RuntimeError: CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "RuntimeError: CUDA error: device-side assert triggered",
        "out of range",
    ),
    (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error.",
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error.",
        "`shm`",
    ),
    (
        """
[rank1]: Traceback (most recent call last):
[rank1]:   File "/work/train.py", line 9, in <module>
[rank1]: ValueError: the batch is empty
E1128 12:00:01.2 139 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 77)
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-28_12:00:01
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 77)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
""",
        "[rank1]: ValueError: the batch is empty",
        "",
    ),
    (
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2005, unhandled system error, NCCL version 2.20.5",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2005, unhandled system error, NCCL version 2.20.5",
        "NCCL_DEBUG",
    ),
    (
        "huggingface_hub.errors.GatedRepoError: 401 Client Error.\n\nAccess to model meta-llama/Llama-3.1-8B is restricted. You must be authenticated to access it.",
        "Access to model meta-llama/Llama-3.1-8B is restricted. You must be authenticated to access it.",
        "HF_TOKEN",
    ),
    ("ModuleNotFoundError: No module named 'datasets'", "ModuleNotFoundError: No module named 'datasets'", "`setup`"),
    (
        "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
        "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
        "the library",
    ),
    ("bash: trian.py: command not found", "bash: trian.py: command not found", "install the program"),
    ("sh: 1: trian.py: not found", "sh: 1: trian.py: not found", "install the program"),
    (
        "/usr/bin/env: ‘python3\\r’: No such file or directory\n/usr/bin/env: use -[v]S to pass options in shebang lines",
        "/usr/bin/env: ‘python3\\r’: No such file or directory",
        "Windows line endings",
    ),
    ("c.sh: line 2: $'foo\\r': command not found", "c.sh: line 2: $'foo\\r': command not found", "Windows line endings"),
    ("bash: ./train.py: Permission denied", "bash: ./train.py: Permission denied", "chmod +x"),
    ("bash: ./a: cannot execute: required file not found", "bash: ./a: cannot execute: required file not found", "first line"),
    (
        "bash: -c: line 1: syntax error near unexpected token `then'\nbash: -c: line 1: `if then'",
        "bash: -c: line 1: syntax error near unexpected token `then'",
        "`shell`",
    ),
    ("OSError: AF_UNIX path too long", "OSError: AF_UNIX path too long", "TMPDIR"),
    ("OSError: [Errno 98] Address already in use", "OSError: [Errno 98] Address already in use", "free one"),
    ("OSError: [Errno 28] No space left on device: 'ck/a.pt'", "OSError: [Errno 28] No space left on device: 'ck/a.pt'", "`disk`"),
    ("ValueError: no\nwandb: Synced 5 files\n\n", "ValueError: no", ""),
    (
        "curl: (22) The requested URL returned error: 404\n\ngzip: stdin: unexpected end of file\n"
        "tar: Child returned status 1\ntar: Error is not recoverable: exiting now",
        "curl: (22) The requested URL returned error: 404",
        "check the address",
    ),
    ("curl: (6) Could not resolve host: example.invalid", "curl: (6) Could not resolve host", "could not be reached"),
    ("fatal: unable to access 'http://h/x.git/': Failed to connect to h port 80", "fatal: unable to access", "could not be reached"),
    ("wget: unable to resolve host address 'h'", "wget: unable to resolve", "could not be reached"),
    ("tar: data.tgz: Cannot open: No such file\ntar: Error is not recoverable: exiting now", "tar: data.tgz: Cannot open", ""),
    ("OSError: You are trying to access a gated repo.\n401 Client Error.", "OSError: You are trying to access a gated repo.", "HF_TOKEN"),
    ("Error: ENOSPC: System limit for number of file watchers reached", "Error: ENOSPC: System limit", ""),
    (
        """
  File "/usr/lib/python3.10/multiprocessing/synchronize.py", line 57, in __init__
    sl = self._semlock = _multiprocessing.SemLock(
OSError: [Errno 28] No space left on device
    return iter(dataloader)OSError
[Errno 28] No space left on device
""",
        "[Errno 28] No space left on device",
        "shared memory",
    ),
    (
        "RuntimeError: unable to write to file </torch_31911_952036340_6686>: No space left on device (28)",
        "RuntimeError: unable to write to file",
        "`shm`",
    ),
    (
        "OSError: [Errno 122] Disk quota exceeded: '/home/u/.cache/huggingface/hub/tmp1'",
        "OSError: [Errno 122]",
        "quota",
    ),
    (
        """
Downloading client-side/dumps.zip (459 MB)
Error downloading object: client-side/dumps.zip (da8da95): Smudge error: Error downloading client-side/dumps.zip (da8da95e9b): batch response: This repository is over its data quota. Account responsible for LFS bandwidth should purchase more data packs to restore access.

Errors logged to '/tmp/vowifi-epdg-scanning/.git/lfs/logs/20240819T090259.148511858.log'.
Use `git lfs logs last` to view the log.
error: external filter 'git-lfs filter-process' failed
fatal: client-side/dumps.zip: smudge filter lfs failed
warning: Clone succeeded, but checkout failed.
You can inspect what was checked out with 'git status'
and retry with 'git restore --source=HEAD :/'
""",
        "Error downloading object: client-side/dumps.zip",
        "LFS",
    ),
    (
        """
git-lfs filter-process: git-lfs: command not found
fatal: the remote end hung up unexpectedly
warning: Clone succeeded, but checkout failed.
""",
        "git-lfs filter-process: git-lfs: command not found",
        "install git-lfs",
    ),
    (
        """
Failed to initialize NVML: Driver/library version mismatch
NVML library version: 570.124
""",
        "Failed to initialize NVML: Driver/library version mismatch",
        "another machine",
    ),
    (
        """
wandb: W&B API key is configured. Use `wandb login --relogin` to force relogin
wandb: ERROR Error while calling W&B API: user is not logged in (<Response [401]>)
wandb: ERROR The API key is either invalid or missing, or the host is incorrect. To resolve this issue, you may try running the 'wandb login --host [hostname]' command. (Error 401: Unauthorized)
Traceback (most recent call last):
  File "train.py", line 1, in <module>
wandb.errors.AuthenticationError: The API key is either invalid or missing, or the host is incorrect.
""",
        "wandb.errors.AuthenticationError",
        "WANDB_API_KEY",
    ),
    (
        """
wandb: ERROR Error while calling W&B API: permission denied (<Response [403]>)
wandb: ERROR Launch exception: Permission denied to access wandb/Dressyou Recommender system/rjih2419
wandb: ERROR W&B process failed to launch, see: wandb/debug.log
wandb.run_manager.LaunchError: W&B process failed to launch, see: wandb/debug.log
""",
        "wandb: ERROR Error while calling W&B API: permission denied",
        "WANDB_API_KEY",
    ),
    (
        """
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, please update the hashes. Otherwise, examine the package contents carefully; someone may have tampered with them.
    torch==2.0.1 from https://download.pytorch.org/whl/cu118/torch-2.0.1-cp310-cp310-win_amd64.whl:
        Expected sha256 7c84e44d9002182edd859f3400deaa7410f5ec948a519cc7ef512c2f9b34d2c4
             Got        a6cd3e2fb74d5bc1fe37122a9d0c6145a8be557db7d0b670330831e376fb285e

[notice] A new release of pip is available: 23.2.1 -> 25.3
""",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES",
        "hash",
    ),
    (
        """
slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM Killed.
srun: error: sdumont6156: task 0: Out Of Memory
""",
        "srun: error: sdumont6156: task 0: Out Of Memory",
        "`memory`",
    ),
    (
        """
  File "/x/torch/utils/data/dataloader.py", line 1133, in _try_get_data
    raise RuntimeError('DataLoader worker (pid(s) {}) exited unexpectedly'.format(pids_str)) from e
RuntimeError: DataLoader worker (pid(s) 411948) exited unexpectedly
""",
        "RuntimeError: DataLoader worker (pid(s) 411948) exited unexpectedly",
        "memory",
    ),
    (
        """
Reading package lists...
E: Release file for http://deb.debian.org/debian/dists/bookworm-updates/InRelease is expired (invalid since 3d 21h 3min 17s). Updates for this repository will not be applied.
""",
        "E: Release file for",
        "clock",
    ),
    (
        """
Reading package lists...
W: GPG error: http://deb.debian.org/debian-ports unstable InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY B523E5F3FC4E5F2C
E: The repository 'http://deb.debian.org/debian-ports unstable InRelease' is not signed.
N: Updating from such a repository can't be done securely, and is therefore disabled by default.
N: See apt-secure(8) manpage for repository creation and user configuration details.
""",
        "E: The repository 'http://deb.debian.org/debian-ports unstable InRelease' is not signed.",
        "key",
    ),
    (
        """
Preparing transaction: done
Verifying transaction: failed

EnvironmentNotWritableError: The current user does not have write permissions to the target environment.
  environment location: /opt/conda
  uid: 1001
  gid: 1001
""",
        "EnvironmentNotWritableError: The current user does not have",
        "conda create",
    ),
    (
        "huggingface_hub.utils._http.OfflineModeIsEnabled: Cannot reach https://huggingface.co/meta-llama/Llama-2-7b-chat-hf/resolve/main/config.json: offline mode is enabled. To disable it, please unset the `HF_HUB_OFFLINE` environment variable.",
        "huggingface_hub.utils._http.OfflineModeIsEnabled",
        "remove HF_HUB_OFFLINE",
    ),
    (
        """
Traceback (most recent call last):
  File "/x/huggingface_hub/utils/_http.py", line 402, in hf_raise_for_status
    response.raise_for_status()
requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://huggingface.co/bert-base-uncase/resolve/main/config.json
OSError: bert-base-uncase is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'
If this is a private repository, make sure to pass a token having permission to this repo either by logging in with `hf auth login` or by passing `token=<your_token>`
""",
        "OSError: bert-base-uncase is not a local folder and is not a valid model identifier",
        "name",
    ),
    (
        """
The following packages have unmet dependencies:
 libcudnn8-dev : Depends: libcudnn8 (= 8.9.2.26-1+cuda12.1) but 8.9.7.29-1+cuda12.2 is to be installed
E: Unable to correct problems, you have held broken packages.
""",
        "E: Unable to correct problems, you have held broken packages.",
        "exclude each other",
    ),
    (
        """
RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call
""",
        "RuntimeError: CUDA error: an illegal memory access",
        "CUDA_LAUNCH_BLOCKING",
    ),
    (
        "ImportError: /usr/local/lib/python3.10/dist-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
        "ImportError: /usr/local/lib",
        "another version",
    ),
    (
        "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject",
        "ValueError: numpy.dtype size changed",
        "numpy",
    ),
    (
        "PermissionError: [Errno 13] Permission denied: '/data/out'",
        "PermissionError: [Errno 13] Permission denied: '/data/out'",
        "folder",
    ),
    (
        "train.sh: line 3: DATA_DIR: unbound variable",
        "train.sh: line 3: DATA_DIR: unbound variable",
        "`env`",
    ),
    (
        "python3: can't open file '/work/trian.py': [Errno 2] No such file or directory",
        "python3: can't open file '/work/trian.py'",
        "name",
    ),
    (
        "OSError: [Errno 30] Read-only file system: '/datasets/cache'",
        "OSError: [Errno 30] Read-only file system",
        "write",
    ),
    (
        """
ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device

[notice] A new release of pip
""",
        "ERROR: Could not install packages due to an OSError: [Errno 28]",
        "disk",
    ),
    (
        """
error: shm segment 4 belongs to another user
AssertionError: expected 3 GPUs
""",
        "AssertionError: expected 3 GPUs",
        "",
    ),
    (
        """
Could not resolve host: tracking.example; continuing without
step 100
KeyError: 'labels'
""",
        "KeyError: 'labels'",
        "",
    ),
    (
        """
WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError': Temporary failure in name resolution
Successfully installed foo
Traceback (most recent call last):
  File "a.py", line 3, in <module>
ValueError: bad batch
""",
        "ValueError: bad batch",
        "",
    ),
    (
        """
/usr/bin/which: nvcc: command not found
nvcc: line 1: nvcc: command not found
epoch 1
Traceback (most recent call last):
  File "a.py", line 3, in <module>
IndexError: list index out of range
""",
        "IndexError: list index out of range",
        "",
    ),
    (
        """
ModuleNotFoundError: No module named 'apex'
Falling back to torch.amp
epoch 1
Traceback (most recent call last):
  File "a.py", line 3, in <module>
ZeroDivisionError: division by zero
""",
        "ZeroDivisionError: division by zero",
        "",
    ),
    ("Solving environment: failed\n\nResolvePackageNotFound: \n  - cudatoolkit=10.1", "ResolvePackageNotFound:", "conda package"),
    (
        "requests.exceptions.SSLError: Max retries exceeded with url: /x (Caused by SSLError('[SSL: CERTIFICATE_VERIFY_FAILED]'))",
        "requests.exceptions.SSLError:",
        "SSL_CERT_FILE",
    ),
    ("bash: line 1:  4242 Killed                  python3 train.py", "bash: line 1:  4242 Killed", "`memory`"),
    (
        "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/usr/local/lib/x'\n"
        "Consider using the `--user` option or check the permissions.",
        "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied",
        "below the working directory",
    ),
    ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation fault.", "RuntimeError: DataLoader worker (pid 7)", ""),
    ("something else went wrong\nmake: *** [Makefile:3: train] Error 2", "something else went wrong", ""),
]


class CauseTest(unittest.TestCase):
    def test_names_the_line_and_what_to_do(self):
        for output, line, advice in CORPUS:
            lines = output.split("\n")
            with self.subTest(line):
                cause = cause_of(lines, lines)
                self.assertTrue(cause.startswith(line), cause)
                self.assertIn(advice, cause[len(line) :])

    def test_a_full_disk_is_none_of_the_other_limits_with_its_error(self):
        full = "OSError: [Errno 28] No space left on device: 'a.pt'"
        for lines, is_expected in (
            ([full], True),
            (["[Errno 28] No space left on device: skipped", "ValueError: no"], False),
            (["    sl = self._semlock = _multiprocessing.SemLock(", "OSError: [Errno 28] No space left on device"], False),
            (["RuntimeError: unable to write to file </torch_3_9_6>: No space left on device (28)"], False),
            (["OSError: [Errno 122] Disk quota exceeded: 'a.pt'"], False),
            (["disk is fine"], False),
        ):
            self.assertEqual(tells_of_full_disk(lines), is_expected, lines)

    def test_finds_an_exception_at_the_end_of_the_errors_and_no_handled_one(self):
        traceback = ["Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "ValueError: boom"]
        self.assertEqual(uncaught(traceback, [*traceback, "end"]), "ValueError: boom")
        in_thread = ["Exception in thread Thread-1 (f):", *traceback, "wandb: synced"]
        self.assertEqual(uncaught(in_thread, in_thread), "ValueError: boom")
        for lines in ([], ["done"], [*traceback, "retrying"], ["ValueError: only said"]):
            self.assertIsNone(uncaught(lines, lines))
        self.assertIsNone(uncaught(traceback, [*traceback, *["step"] * 20]))

    def test_reads_the_other_output_when_errors_went_there(self):
        self.assertEqual(cause_of([], ["step 1", "KeyError: 'loss'", "step 2"]), "KeyError: 'loss'")
        self.assertEqual(cause_of(["the last word"], ["the last word", "step 2"]), "the last word")
        self.assertEqual(cause_of([], ["step 1", " "]), "step 1")

    def test_shows_no_colours_and_nothing_without_output(self):
        self.assertEqual(cause_of(["plain", "\x1b[1;31m red\x1b[0m\x07", "\x1b[0m"], []), "red")
        self.assertIsNone(cause_of(["", " "], []))

    def test_shortens_a_long_line(self):
        self.assertEqual(len(cause_of(["x" * 1_000], [])), 243)

    def test_long_lines_that_repeat_the_beginning_of_a_cause_take_no_time(self):
        beginnings = ("error: command ", "DataLoader worker", "Permission denied", "Access to model ", "401 Client Error ", "^ ", "a:", 'File "')
        began = time.process_time()
        for words in beginnings:
            line = words * (16_000 // len(words)) + "!"
            cause_of([line] * 5, [line] * 5)
        self.assertLess(time.process_time() - began, 3)


if __name__ == "__main__":
    unittest.main()
