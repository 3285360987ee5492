"""Measures each script in a process of its own, because libraries keep what an earlier script has made."""

import datetime
import json
import os
import platform
import subprocess
import sys


def report(measured, versions):
    """Prints the figures of the scripts that are named on the command line; `versions`: those of the libraries they need."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(sys.argv[2])))
        return
    known = versions()
    cases = {}
    for script in sys.argv[1:]:
        program = [sys.executable, sys.argv[0], "--one", script]
        out = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout
        cases[os.path.basename(script)] = json.loads(out.splitlines()[-1])
    figures = {
        "measuredAt": datetime.date.today().isoformat(),
        "versions": known,
        "machine": f"{platform.machine()}, CPU",
        "bytes": cases,
    }
    print(json.dumps(figures, indent=2))
