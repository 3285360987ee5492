"""Measures what training scripts need of a GPU: python3 measure_gpu.py gpu/*.py > measured-gpu.json

Each script runs for some steps in a process of its own, which must be the only one on the GPU. `allocatedPeak` is the most that PyTorch has given to
tensors, `reserved` what it has taken from the driver, `process` what the driver counts for the whole process, with CUDA and its libraries.
"""

import datetime
import json
import os
import platform
import runpy
import subprocess
import sys

STEPS = 16
MIB = 2**20


def used_by_process():
    query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    answer = subprocess.run(query, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split(",") for line in answer.splitlines() if line.strip()]
    return sum(int(used) for pid, used in rows if int(pid) == os.getpid()) * MIB


def measured(script):
    import torch

    class Done(BaseException):
        pass

    steps = 0
    for name in dir(torch.optim):
        kind = getattr(torch.optim, name)
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and "step" in vars(kind):

            def stepping(optimizer, *args, _step=kind.step, **kwargs):
                nonlocal steps
                result = _step(optimizer, *args, **kwargs)
                steps += 1
                if steps >= STEPS:
                    raise Done
                return result

            kind.step = stepping
    sys.argv = [script]
    try:
        runpy.run_path(script, run_name="__main__")
    except Done:
        pass
    torch.cuda.synchronize()
    return {
        "allocatedPeak": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "process": used_by_process(),
    }


def main():
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(sys.argv[2])))
        return
    import torch
    import torchvision
    import transformers

    figures = {}
    for script in sys.argv[1:]:
        program = [sys.executable, sys.argv[0], "--one", script]
        out = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout
        figures[os.path.basename(script)] = json.loads(out.splitlines()[-1])
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "transformers": transformers.__version__,
    }
    document = {
        "measuredAt": datetime.date.today().isoformat(),
        "versions": versions,
        "gpu": torch.cuda.get_device_name(),
        "bytes": figures,
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
