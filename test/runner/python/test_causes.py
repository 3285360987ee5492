import time
import unittest

from crucible_runner.process.causes import cause_of, uncaught

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
        "python3 -m venv",
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
