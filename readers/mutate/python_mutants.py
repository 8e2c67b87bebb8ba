"""Mutants of a Python file, from its syntax tree."""

import ast

from mutant import Mutant


def mutants(source, checks):
    """Yields the mutants of a source text. `checks` are functions whose first argument is a
    condition: the file is refused if it is true."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def span(node):
        return (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )

    whole = set()  # comparisons that are a whole condition, which is negated already

    def make(kind, node, function, new):
        text = source.encode()
        start, end = span(node)
        old = text[start:end].decode()
        changed = text[:start] + new(old).encode() + text[end:]
        return Mutant(kind, function, node.lineno, " ".join(old.split()), changed.decode())

    def condition(node, function, is_check):
        if isinstance(node, ast.Compare):
            whole.add(node)
        yield make("negate", node, function, lambda old: f"(not ({old}))")
        if is_check:
            yield make("delete", node, function, lambda old: "False")

    def walk(node, function):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}" if function else node.name
        if isinstance(node, ast.If):
            yield from condition(node.test, function, not node.orelse)
        elif isinstance(node, (ast.While, ast.IfExp)):
            yield from condition(node.test, function, False)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from condition(test, function, False)
                yield make("delete", test, function, lambda old: "True")
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) in checks:
            yield from condition(node.args[0], function, True)
        elif isinstance(node, ast.BoolOp):
            neutral = "True" if isinstance(node.op, ast.And) else "False"
            for operand in node.values:
                yield make("drop", operand, function, lambda old: neutral)
        elif isinstance(node, ast.Compare) and node not in whole:
            yield make("negate", node, function, lambda old: f"(not ({old}))")
        for child in ast.iter_child_nodes(node):
            yield from walk(child, function)

    yield from walk(ast.parse(source), "")
