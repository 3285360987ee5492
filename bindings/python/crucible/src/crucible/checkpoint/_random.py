"""The random states of a process: of Python, and of NumPy and PyTorch if the program uses them."""

from __future__ import annotations

import random
import sys
from typing import Any, Dict


def random_states() -> Dict[str, Any]:
    """Returns the states as plain values and tensors."""
    states: Dict[str, Any] = {"python": random.getstate()}
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, position, has_gauss, gauss = numpy.random.get_state()
        states["numpy"] = (name, [int(key) for key in keys], int(position), int(has_gauss), float(gauss))
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            states["cuda"] = torch.cuda.get_rng_state_all()
        if hasattr(torch, "mps") and torch.backends.mps.is_available():
            states["mps"] = torch.mps.get_rng_state()
    return states


def set_random_states(states: Dict[str, Any]) -> None:
    """Sets what `random_states` has returned. States of devices that this machine lacks are left out."""
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        name, keys, position, has_gauss, cached = states["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype=numpy.uint32), position, has_gauss, cached))
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return
    if "torch" in states:
        torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        for device, state in enumerate(states["cuda"][: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(state, device)
    if "mps" in states and hasattr(torch, "mps") and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])
