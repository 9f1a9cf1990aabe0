"""Mutation check: random faults in the code, and whether the tests find them.

    python -m robustness.mutants [-n 60] [--seed 0] [--tests REVISION] [PACKAGE ...]

Each mutant changes one comparison, operation, condition or number of a package, in a copy of the checkout,
where the tests of the package run until the first failure. Printed are each mutant with the test that found
it, and the survivors. With --tests, the survivors are also tested with the tests of another revision: only
what those find, the present tests have lost. The code is the committed one.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = {
    "bws": ["tests/bws", "bws", "tests/test_sample.py"],
    "giccs/measures": ["tests/giccs/measures", "giccs/measures", "tests/giccs/report"],
    "mturk/service/rules": ["tests/mturk/service", "mturk/service"],
    "mturk/study": ["tests/mturk", "mturk/study"],
}
"""Package -> tests that shall find its faults, in the order in which they run."""
TIMEOUT_SECONDS = 1_800
OPPOSITES: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And, ast.FloorDiv: ast.Div,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change of the node with index `number` in the walk through a file."""

    package: str
    file: str
    number: int

    def apply(self, folder: Path) -> str:
        """Change the file; return line and change."""
        path = folder / self.file
        tree = ast.parse(path.read_text("utf-8"))
        node = list(_candidates(tree))[self.number]
        before = _text(node)
        _change(node)
        path.write_text(ast.unparse(tree), "utf-8")
        return f"{self.file}:{getattr(node, 'lineno', '?')}: {before} -> {_text(node)}"


def _text(node: ast.AST) -> str:
    return f"if {ast.unparse(node.test)}" if isinstance(node, ast.If) else ast.unparse(node)


def _candidates(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of function bodies that can be changed."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                yield from filter(_can_change, ast.walk(statement))


def _can_change(node: ast.AST) -> bool:
    match node:
        case ast.Compare(ops=[only]) | ast.BinOp(op=only) | ast.BoolOp(op=only):
            return type(only) in OPPOSITES
        case ast.Constant(value=value):
            return type(value) in (int, float, bool)
        case ast.UnaryOp(op=ast.Not()) | ast.If():
            return True
    return False


def _change(node: ast.AST) -> None:
    match node:
        case ast.Compare(ops=[only]):
            node.ops = [OPPOSITES[type(only)]()]
        case ast.BinOp(op=only) | ast.BoolOp(op=only):
            node.op = OPPOSITES[type(only)]()
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=value):
            node.value = value + 1
        case ast.UnaryOp():
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.If():
            node.test = ast.UnaryOp(ast.Not(), node.test)


def draw(packages: list[str], n_mutants: int, seed: int) -> list[Mutant]:
    """Draw different mutants, uniformly from all places of the packages."""
    places = [
        Mutant(package, str(path.relative_to(ROOT)), number)
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
        for number, _ in enumerate(_candidates(ast.parse(path.read_text("utf-8"))))
    ]
    return random.Random(seed).sample(places, n_mutants)


def find(mutant: Mutant, tests: str) -> tuple[str, str]:
    """Return the change, and the test of the revision `tests` that finds it; empty if none does."""
    with tempfile.TemporaryDirectory(prefix="giccs-mutant-") as name:
        folder = Path(name)
        _extract("HEAD", ".", folder)
        if tests != "HEAD":
            subprocess.run(["rm", "-r", str(folder / "tests")], check=True)
            _extract(tests, "tests", folder)
        change = mutant.apply(folder)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": f"{folder}:{folder / 'app'}"}
        try:
            done = subprocess.run(
                [*command, *TESTS[mutant.package]], cwd=folder, env=environment, text=True,
                capture_output=True, timeout=TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return change, "timeout"
    if done.returncode == 0:
        return change, ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    return change, found[1] if found else f"exit code {done.returncode}"


def _extract(revision: str, path: str, folder: Path) -> None:
    archive = subprocess.run(
        ["git", "archive", revision, path], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the check; return 1 if the tests of --tests find a mutant that the present ones do not."""
    parser = argparse.ArgumentParser(prog="robustness.mutants")
    parser.add_argument(
        "packages", nargs="*", default=list(TESTS), choices=list(TESTS), metavar="PACKAGE"
    )
    parser.add_argument("-n", type=int, default=60, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", help="revision whose tests the survivors are tested with too")
    options = parser.parse_args(arguments)
    n_found = n_lost = 0
    for mutant in draw(options.packages, options.n, options.seed):
        change, test = find(mutant, "HEAD")
        former = find(mutant, options.tests)[1] if options.tests and not test else ""
        n_found, n_lost = n_found + bool(test), n_lost + bool(former)
        outcome = test or f"SURVIVED{f', found by the former {former}' if former else ''}"
        print(f"{' '.join(change.split())}: {outcome}", flush=True)
    print(f"{n_found} of {options.n} found; {n_lost} found by the former tests only")
    return 1 if n_lost else 0


if __name__ == "__main__":
    sys.exit(main())
