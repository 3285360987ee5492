"""Prints the strings and comments of Python files as JSON: for each given file a list of [line, kind, text]."""
import json
import sys
import tokenize

KINDS = {tokenize.STRING: "string", tokenize.COMMENT: "comment"}
# Since Python 3.12 an f-string is several tokens.
if hasattr(tokenize, "FSTRING_MIDDLE"):
    KINDS[tokenize.FSTRING_MIDDLE] = "string"


def pieces(path):
    with open(path, "rb") as file:
        return [[t.start[0], KINDS[t.type], t.string] for t in tokenize.tokenize(file.readline) if t.type in KINDS]


print(json.dumps([pieces(path) for path in sys.argv[1:]]))
