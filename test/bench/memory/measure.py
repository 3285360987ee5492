"""Measures what small training scripts keep in memory: python3 measure.py models/*.py > measured.json

Each script runs up to its first optimizer step. Parameters, gradients and optimizer state are counted exactly; activations are the storages that
autograd saves for the backward pass, each once, without those of the parameters.
"""

import gc
import platform
import sys

import alone


def measured(script):
    import runpy

    import torch

    saved = {}
    alive = []  # so that no address is used twice

    def pack(tensor):
        storage = tensor.storage()
        if storage._cdata not in saved:
            saved[storage._cdata] = storage.nbytes()
            alive.append(storage)
        return tensor

    class Done(BaseException):
        pass

    figures = {}

    def size(tensors):
        unique = {tensor.storage()._cdata: tensor.storage().nbytes() for tensor in tensors}
        return sum(unique.values())

    def after_step(optimizer):
        parameters = [each for each in gc.get_objects() if isinstance(each, torch.nn.Parameter)]
        own = {each.storage()._cdata for each in parameters}
        states = [value for state in optimizer.state.values() for value in state.values()]
        figures["weights"] = size(parameters)
        figures["gradients"] = size([each.grad for each in parameters if each.grad is not None])
        figures["optimizer"] = size([value for value in states if torch.is_tensor(value)])
        figures["activations"] = sum(bytes for key, bytes in figures.pop("saved").items() if key not in own)
        raise Done

    backward = torch.Tensor.backward

    def noting(tensor, *args, **kwargs):
        figures.setdefault("saved", dict(saved))
        return backward(tensor, *args, **kwargs)

    torch.Tensor.backward = noting
    # The step of each class is wrapped when it makes its first object, so this one comes first.
    for name in dir(torch.optim):
        kind = getattr(torch.optim, name)
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and "step" in vars(kind):

            def stepping(optimizer, *args, _step=kind.step, **kwargs):
                _step(optimizer, *args, **kwargs)
                after_step(optimizer)

            kind.step = stepping
    sys.argv = [script]
    torch.manual_seed(0)
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            runpy.run_path(script, run_name="__main__")
    except Done:
        pass
    return figures


def versions():
    try:
        import torch
        import torchvision
    except ImportError as error:
        sys.exit(f"PyTorch and torchvision are needed to measure: {error}. On Debian: apt-get install python3-torch python3-torchvision")
    return {"python": platform.python_version(), "torch": torch.__version__, "torchvision": torchvision.__version__}


if __name__ == "__main__":
    alone.report(measured, versions)
