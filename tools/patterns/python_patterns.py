"""Prints the regular expressions of Python files as JSON, one object for each: `file`, `line`, `source` (null if it is not a constant) and
`flags`, and `anchors`: "start" if every use matches at the start, "both" if every use matches the whole text.

The arguments are the root of the tree and the files, relative to it. Nothing is imported: constants are worked out from the source.
"""

import ast
import json
import os
import sys

FUNCTIONS = ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
FLAGS = {"IGNORECASE": "i", "I": "i", "MULTILINE": "m", "M": "m", "DOTALL": "s", "S": "s", "VERBOSE": "x", "X": "x", "ASCII": "a", "A": "a"}


class Unknown(Exception):
    """The value is not a constant."""


def as_text(value):
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, str):
        return value
    raise Unknown()


class File:
    def __init__(self, path, root):
        self.path = path
        self.root = root
        with open(os.path.join(root, path), encoding="utf-8") as source:
            self.tree = ast.parse(source.read(), path)
        self.assigned = {}
        self.imported = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                child.parent = node
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.assigned[node.targets[0].id] = node.value
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.level:
                folder = os.path.dirname(path)
                for _ in range(node.level - 1):
                    folder = os.path.dirname(folder)
                for alias in node.names:
                    where = os.path.join(folder, *node.module.split(".")) + ".py"
                    self.imported[alias.asname or alias.name] = (where, alias.name)


class Tree:
    def __init__(self, root, paths):
        self.files = {path: File(path, root) for path in paths}
        self.calls = {}
        for file in self.files.values():
            for node in ast.walk(file.tree):
                if isinstance(node, ast.Call):
                    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)
                    self.calls.setdefault(name, []).append((file, node))

    def values(self, file, node):
        """Returns all values that the expression can have."""
        if isinstance(node, ast.Constant):
            return [as_text(node.value)]
        if isinstance(node, ast.Name):
            return self.named(file, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [left + right for left in self.values(file, node.left) for right in self.values(file, node.right)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self.formatted(file, node)
        if isinstance(node, ast.JoinedStr):
            texts = [""]
            for part in node.values:
                inner = self.values(file, part.value if isinstance(part, ast.FormattedValue) else part)
                texts = [text + each for text in texts for each in inner]
            return texts
        if isinstance(node, (ast.Tuple, ast.List)):
            return [value for element in node.elts for value in self.values(file, element)]
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "encode":
            return self.values(file, node.func.value)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "escape":
            return ["x"]
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "join" and node.args:
            (between,) = self.values(file, node.func.value)
            return [between.join(self.values(file, node.args[0]))]
        raise Unknown()

    def formatted(self, file, node):
        right = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        texts = []
        for form in self.values(file, node.left):
            parts = form.split("%s")
            if len(parts) != len(right) + 1:
                raise Unknown()
            made = [parts[0]]
            for element, part in zip(right, parts[1:]):
                made = [text + value + part for text in made for value in self.values(file, element)]
            texts += [text.replace("%%", "%") for text in made]
        return texts

    def named(self, file, node):
        inner = node
        while hasattr(inner, "parent"):
            inner = inner.parent
            if isinstance(inner, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
                for generator in inner.generators:
                    if isinstance(generator.target, ast.Name) and generator.target.id == node.id:
                        return self.values(file, generator.iter)
                    names = [getattr(target, "id", None) for target in getattr(generator.target, "elts", ())]
                    if node.id in names:
                        return self.unpacked(generator.iter, names.index(node.id))
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = [argument.arg for argument in inner.args.args]
                if node.id in names:
                    return self.given(inner.name, names.index(node.id), node.id)
                for each in ast.walk(inner):
                    if isinstance(each, ast.Assign) and any(getattr(target, "id", None) == node.id for target in each.targets):
                        return self.values(file, each.value)
        if node.id in file.assigned:
            return self.values(file, file.assigned[node.id])
        if node.id in file.imported:
            path, name = file.imported[node.id]
            other = self.files.get(path)
            if other is not None and name in other.assigned:
                return self.values(other, other.assigned[name])
        raise Unknown()

    def unpacked(self, node, index):
        """Returns the values of one element of the tuples that the callers give for a parameter such as `*pairs`."""
        function = node
        while not isinstance(function, ast.FunctionDef):
            if not hasattr(function, "parent"):
                raise Unknown()
            function = function.parent
        if getattr(function.args.vararg, "arg", None) != getattr(node, "id", ""):
            raise Unknown()
        return [
            value
            for file, call in self.calls.get(function.name, [])
            for element in call.args[len(function.args.args) :]
            for value in self.values(file, element.elts[index])
        ]

    def given(self, function, index, name):
        """Returns the values that the callers of a function give for a parameter."""
        found = []
        for file, call in self.calls.get(function, []):
            keyword = next((each.value for each in call.keywords if each.arg == name), None)
            if keyword is not None or index < len(call.args):
                found += self.values(file, keyword if keyword is not None else call.args[index])
        if not found:
            raise Unknown()
        return found


def flags_of(nodes):
    names = {node.attr for top in nodes for node in ast.walk(top) if isinstance(node, ast.Attribute)}
    return "".join(sorted({FLAGS[name] for name in names if name in FLAGS}))


def anchors_of(file, call):
    """How the expression is used: a compiled one by the calls of its name in the file, if these are all."""
    uses = [call.func.attr]
    if uses == ["compile"]:
        target = getattr(call, "parent", None)
        name = target.targets[0].id if isinstance(target, ast.Assign) and isinstance(target.targets[0], ast.Name) else None
        if name is None or not name.startswith("_"):
            return ""
        uses = [
            node.parent.attr if isinstance(node.parent, ast.Attribute) else "search"
            for node in ast.walk(file.tree)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]
    if uses and all(use == "fullmatch" for use in uses):
        return "both"
    return "start" if uses and all(use in ("match", "fullmatch") for use in uses) else ""


def patterns(tree):
    for file in tree.files.values():
        for node in ast.walk(file.tree):
            is_of_re = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS
            if not is_of_re or not isinstance(node.func.value, ast.Name) or node.func.value.id != "re" or not node.args:
                continue
            rest = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
            place = {"file": file.path, "line": node.lineno, "flags": flags_of(rest), "anchors": anchors_of(file, node)}
            try:
                sources = tree.values(file, node.args[0])
            except Unknown:
                sources = [None]
            for source in sources:
                yield dict(place, source=source, written=ast.unparse(node.args[0]))


if __name__ == "__main__":
    json.dump(list(patterns(Tree(sys.argv[1], sys.argv[2:]))), sys.stdout)
