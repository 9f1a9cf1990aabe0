"""Imports between the modules of mturk, including those in functions and for types."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import mturk

ROOT = Path(mturk.__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in Path(mturk.__file__).parent.rglob("*.py")
}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in names)


def test_no_circular_imports():
    graph = {name: {*imports_of(path)} & MODULES.keys() for name, path in MODULES.items()}
    assert len([*TopologicalSorter(graph).static_order()]) == len(MODULES)  # or CycleError


def test_sentence_kinds_are_not_referenced_elsewhere():
    kinds = ("mturk.kinds.conditions", "mturk.kinds.relabel", "mturk.kinds.verification")
    importers = {
        name for name, path in MODULES.items() for one in imports_of(path) if one.startswith(kinds)
    }
    assert importers == set()
