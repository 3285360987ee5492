"""Progress of the training: from the helper's file, otherwise from the program's output."""

from .progress import Progress

__all__ = ["Progress"]
