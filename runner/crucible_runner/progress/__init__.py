"""How far the training is: from what the helper writes, else from what the program prints."""

from .progress import Progress

__all__ = ["Progress"]
