"""train.py here reads the text itself, so all that is left to prepare is to see that it is there."""

import os

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "input.txt"), encoding="utf-8") as file:
    print("length of dataset in characters: %d" % len(file.read()))
