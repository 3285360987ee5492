"""Makes mutants of Python files with the operators of Cosmic Ray.

    mutate.py list FILE...   prints one mutant a line: file, line, operator, occurrence
    mutate.py make           reads such lines from standard input, and adds start, before and after
    mutate.py mark FOLDER    reads {file: {line: [id, ...]}} from standard input and changes the files below the present folder: each process
                             that reaches one of these lines notes its ids, with the time, in a file of its own in FOLDER
"""

import ast
import json
import os
import sys

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

# The operators that Stryker has too. Others of Cosmic Ray, such as other numbers, make mostly equal programs or such as cannot run.
_CHOSEN = (
    *("ReplaceComparisonOperator_" + each for each in ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt")),
    *("ReplaceComparisonOperator_" + each for each in ("Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt", "Is_IsNot", "IsNot_Is")),
    *("ReplaceBinaryOperator_" + each for each in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul")),
    *("ReplaceUnaryOperator_" + each for each in ("USub_UAdd", "Delete_Not")),
    *("ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "AddNot"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"),
)


_EMPTY_BLOCK = "EmptyBlock"


def _positions(file):
    """Yields line, operator and occurrence of each mutant of a file."""
    text = _read(file)
    nodes = list(ast_nodes(get_ast(text)))
    for name in _CHOSEN:
        operator = get_operator("core/" + name)()
        found = [start[0] for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, line in enumerate(found):
            yield line, name, occurrence
    for occurrence, (first, _) in enumerate(_blocks(text)):
        yield first, _EMPTY_BLOCK, occurrence


def _mutated(text, operator, occurrence):
    if operator != _EMPTY_BLOCK:
        return mutate_code(text, get_operator("core/" + operator)(), occurrence)
    first, last = _blocks(text)[occurrence]
    lines = text.splitlines(keepends=True)
    indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
    return "".join(lines[: first - 1] + [indent + "pass\n"] + lines[last:])


def _blocks(text):
    """Returns the first and the last line of each block that can be emptied, as Stryker does: the body of a function, and each block of
    more than one statement."""
    found = []
    for node in ast.walk(ast.parse(text)):
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(node, (ast.ClassDef, ast.Module)) or not isinstance(block, list):
                continue
            if block and isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant):
                block = block[1:]
            if len(block) < (1 if is_function else 2) or all(isinstance(each, (ast.Pass, ast.Raise)) for each in block):
                continue
            found.append((_first_line(block[0]), block[-1].end_lineno))
    return found


def _first_line(statement):
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno] + [each.lineno for each in decorators])


def _read(file):
    with open(file, encoding="utf-8") as opened:
        return opened.read()


def list_mutants(files):
    for file in files:
        for line, operator, occurrence in sorted(_positions(file)):
            print(json.dumps({"file": file, "line": line, "operator": operator, "occurrence": occurrence}))


def make(mutants):
    for mutant in mutants:
        text = _read(mutant["file"])
        changed = _mutated(text, mutant["operator"], mutant["occurrence"])
        try:
            ast.parse(changed)
        except SyntaxError:
            continue
        start = len(os.path.commonprefix([text, changed]))
        rest = len(os.path.commonprefix([text[start:][::-1], changed[start:][::-1]]))
        before, after = text[start : len(text) - rest], changed[start : len(changed) - rest]
        print(json.dumps(dict(mutant, start=start, before=before, after=after)))


_MARKER = """
import os as _os, sys as _sys, time as _time
_noted = set()
def _reached(*ids):
    test = getattr(_sys, "crucible_test", "")
    new = [each for each in ids if (test, each) not in _noted]
    if new:
        _noted.update((test, each) for each in new)
        with open("%(folder)s/%%d" %% _os.getpid(), "a") as file:
            file.write("".join("%%d %%s %%s\\n" %% (_time.time() * 1000, each, test) for each in new))
"""


def mark(folder, wanted):
    for file, lines in wanted.items():
        text = _read(file)
        places = {}
        for line, ids in lines.items():
            place = _statement_of(ast.parse(text), int(line))
            if place is not None:
                places.setdefault((_first_line(place), place.col_offset), []).extend(ids)
        rows = text.splitlines(keepends=True)
        for (line, column), ids in sorted(places.items(), reverse=True):
            rows.insert(line - 1, "%s_reached(%s)\n" % (" " * column, ", ".join(map(json.dumps, ids))))
        imports = ast.parse(text).body
        first = next(each for each in imports if not _is_head(each))
        at = _first_line(first) - 1
        with open(file, "w", encoding="utf-8") as opened:
            opened.write("".join(rows[:at]) + _MARKER % {"folder": folder} + "".join(rows[at:]))


def _is_head(statement):
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _statement_of(tree, line):
    """Returns the innermost statement of a line before which another statement can stand, inside a function; None at the top level."""
    found = None

    def visit(node, is_inside):
        nonlocal found
        for field in ("body", "orelse", "finalbody", "handlers"):
            for each in getattr(node, field, None) or []:
                if not isinstance(each, (ast.stmt, ast.ExceptHandler)) or not _first_line(each) <= line <= each.end_lineno:
                    continue
                is_elif = field == "orelse" and isinstance(node, ast.If) and isinstance(each, ast.If) and each.col_offset == node.col_offset
                is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
                if is_inside and isinstance(each, ast.stmt) and not is_elif and not is_text:
                    found = each
                visit(each, is_inside or isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))

    visit(tree, False)
    return found


if __name__ == "__main__":
    if sys.argv[1] == "list":
        list_mutants(sys.argv[2:])
    elif sys.argv[1] == "make":
        make(json.loads(line) for line in sys.stdin)
    else:
        mark(sys.argv[2], json.load(sys.stdin))
