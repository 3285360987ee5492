"""Prints the Terraform files of a folder as JSON: one list of blocks by kind."""
import json
import pathlib
import sys

import hcl2


def plain(value):
    """The parser keeps the quotes of texts and of labels, and marks what is a block."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if not key.startswith("__")}
        return {plain(key): plain(each) for key, each in kept.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value


blocks = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.tf")):
    for kind, each in hcl2.loads(path.read_text()).items():
        blocks.setdefault(kind, []).extend(plain(each))
json.dump(blocks, sys.stdout)
