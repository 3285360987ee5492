"""Parts of the tests of the Python package against a deployment."""

import ast
import asyncio
import contextlib
import io
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

#: Saves every ten steps and continues from there. With GATE, it waits at step 20 of its first two attempts until that file exists.
TRAIN = """
import json, os, signal, sys, time
folder, resume = os.environ["CRUCIBLE_CHECKPOINT_DIR"], os.environ.get("CRUCIBLE_RESUME_FROM")
step, attempt = json.load(open(resume)) if resume else 0, os.environ["CRUCIBLE_ATTEMPT"]
def save():
    path = os.path.join(folder, "step-%04d.json" % step)
    with open(path + ".tmp", "w") as file: json.dump(step, file)
    os.replace(path + ".tmp", path)
def stop(*_):
    save()
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
print("token of %d letters for %s" % (len(os.environ.get("TOKEN", "")), sys.argv[1:]), flush=True)
while step < 40:
    step += 1
    print("step %d/40 loss %.2f" % (step, 4 / step), flush=True)
    if step % 10 == 0: save()
    while step == 20 and "GATE" in os.environ and not os.path.exists(os.environ["GATE"]): time.sleep(0.02)
with open(os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], "result.txt"), "w") as file: file.write("counted to %d" % step)
"""


def write_scripts():
    """Writes the scripts that the pages submit into this folder, and lets its modules be imported."""
    for name in ("train.py", "nanogpt_train.py"):
        Path(name).write_text(TRAIN)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def snippets(page):
    """The Python of a page of Markdown."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def run(source):
    """Runs source text as a cell of a notebook does, with await at the top. Returns what it printed."""
    printed = io.StringIO()
    names = {"__name__": "__main__"}
    code = compile(source, "<snippet>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(printed):
        waiting = eval(code, names)
        if waiting is not None:
            asyncio.run(waiting)
    return printed.getvalue()
