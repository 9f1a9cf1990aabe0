"""Mutation check: random faults in the code, and whether the tests find them.

    python -m robustness.mutants [-n 60] [--seed 0] [--tests REVISION] [PACKAGE ...]

Each mutant changes one comparison, operation, condition or number of a package. A copy of the checkout
contains the code with all mutants, of which an environment variable activates one. All tests run once without
mutants: those that fail are left out, and each mutant is tested with the files of tests that reach its place,
the fastest file first, until the first failure. Printed are each mutant with the test that found it, and the
number of survivors. With --tests, the tests of another revision are compared on the same mutants. The code
is the committed one.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from robustness import mutant_switch

ROOT = Path(__file__).parents[1]
TESTS = {
    "bws": [
        "tests/bws",
        "bws",
        "tests/test_sample.py",
        "tests/test_outputs.py",
        "tests/giccs/benchmark",
        "tests/giccs/preparation",
        "tests/giccs/evalrank/test_own_pairs.py",
    ],
    "giccs/measures": [
        "tests/giccs/measures",
        "giccs/measures",
        "tests/giccs/report",
        "tests/giccs/csts/test_errors.py",
    ],
    "mturk/service/rules": ["tests/mturk/service", "mturk/service"],
    "mturk/study": ["tests/mturk", "mturk/study"],
}
"""Package -> tests that shall find its faults."""
SWITCH = "_is_active_mutant"
Place = ast.expr | ast.If
AnyPlace = TypeVar("AnyPlace", bound=Place)
REACHED, RESULT = (
    f"robustness/{path.name}" for path in (mutant_switch.REACHED, mutant_switch.RESULT)
)
TIMEOUT_SECONDS = 1_800
OPPOSITES: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And, ast.FloorDiv: ast.Div,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change of the node with index `position` among those of a file that can be changed."""

    file: str
    position: int


def _candidates(node: ast.AST, in_function: bool = False) -> Iterator[Place]:
    """Yield the nodes of function bodies that can be changed."""
    if in_function and _can_change(node):
        yield node
    match node:
        case ast.FunctionDef(body=body):
            children: Iterable[ast.AST] = body
            in_function = True
        case ast.AnnAssign(value=value):
            children = [value] if value else []
        # A pattern cannot call the switch; zip's strict=True changes nothing.
        case ast.MatchValue() | ast.keyword(arg="strict"):
            children = []
        case _:
            children = ast.iter_child_nodes(node)
    for child in children:
        yield from _candidates(child, in_function)


def _can_change(node: ast.AST) -> TypeGuard[Place]:
    match node:
        case ast.Compare(ops=[only]) | ast.BinOp(op=only) | ast.BoolOp(op=only):
            return type(only) in OPPOSITES
        case ast.Constant(value=value):
            return type(value) in (int, float, bool)
        case ast.UnaryOp(op=ast.Not()) | ast.If():
            return True
    return False


def _change(node: Place) -> None:
    match node:
        case ast.Compare(ops=[only]):
            node.ops = [OPPOSITES[type(only)]()]
        case ast.BinOp(op=only) | ast.BoolOp(op=only):
            node.op = OPPOSITES[type(only)]()
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1
        case ast.UnaryOp():
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.If():
            node.test = ast.UnaryOp(ast.Not(), node.test)


class _Switches(ast.NodeTransformer):
    """Replace each node of a mutant by a choice between the node and its mutant."""

    def __init__(self, numbers: dict[Place, int]):
        self.numbers = numbers
        self.changes: dict[int, str] = {}

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node with the switches inside, and its own."""
        number = self.numbers.get(node) if isinstance(node, Place) else None
        if number is None or not isinstance(node, Place):
            return self.generic_visit(node)
        self.changes[number] = f"{node.lineno}: {_text(node)} -> {_text(_changed(node))}"
        self.generic_visit(node)
        if isinstance(node, ast.If):
            node.test = _choice(number, _changed(node).test, node.test)
            return node
        return _choice(number, _changed(node), node)


def _changed(node: AnyPlace) -> AnyPlace:
    mutant = copy.deepcopy(node)
    _change(mutant)
    return mutant


def _text(node: Place) -> str:
    text = f"if {ast.unparse(node.test)}" if isinstance(node, ast.If) else ast.unparse(node)
    return " ".join(text.split())


def _choice(number: int, mutant: ast.expr, node: ast.expr) -> ast.expr:
    call = ast.Call(ast.Name(SWITCH, ast.Load()), [ast.Constant(number)], [])
    return ast.IfExp(call, mutant, node)


def draw(folder: Path, packages: list[str], n_mutants: int, seed: int) -> list[Mutant]:
    """Draw different mutants, uniformly from all places of the packages."""
    places = [
        Mutant(str(path.relative_to(folder)), position)
        for package in packages
        for path in sorted((folder / package).rglob("*.py"))
        for position, _ in enumerate(_candidates(ast.parse(path.read_text("utf-8"))))
    ]
    return random.Random(seed).sample(places, n_mutants)


def insert_switches(folder: Path, mutants: list[Mutant]) -> list[str]:
    """Write the code with all mutants; return file, line and change of each."""
    changes: dict[int, str] = {}
    for file in sorted({mutant.file for mutant in mutants}):
        tree = ast.parse((folder / file).read_text("utf-8"))
        nodes = list(_candidates(tree))
        switches = _Switches(
            {nodes[mutant.position]: i for i, mutant in enumerate(mutants) if mutant.file == file}
        )
        switches.visit(tree)
        changes |= {number: f"{file}:{change}" for number, change in switches.changes.items()}
        (folder / file).write_text(_with_import(ast.unparse(tree)), "utf-8")
    return [changes[number] for number in range(len(mutants))]


def _with_import(code: str) -> str:
    future = "from __future__ import annotations\n"
    line = f"from robustness.mutant_switch import is_active as {SWITCH}\n"
    return code.replace(future, future + line, 1)


class Suite:
    """The tests of a revision on the code with all mutants, and what they do without a mutant."""

    def __init__(self, folder: Path, packages: list[str]):
        self.folder = folder
        paths = [path for package in packages for path in TESTS[package]]
        baseline = self._run(
            "--continue-on-collection-errors", *filter(self._exists, dict.fromkeys(paths))
        )
        self.failures = [f"--deselect={test}" for test in baseline["failed"]]
        reached = defaultdict[int, set[str]](set)
        for line in (folder / REACHED).read_text("utf-8").splitlines():
            number, file = line.split("\t")
            reached[int(number)].add(file)
        by_time = sorted(baseline["seconds"], key=baseline["seconds"].get)
        # A place that is reached by imports alone may be imported by any file.
        self.files = {
            number: [file for file in by_time if file in files] or by_time
            for number, files in reached.items()
        }

    def _exists(self, path: str) -> bool:
        return (self.folder / path).exists()

    def find(self, number: int) -> str:
        """Return the test that finds a mutant; empty if none does."""
        if number not in self.files:
            return ""
        result = self._run("-x", *self.failures, *self.files[number], number=number)
        return next(iter(result["failed"]), "")

    def _run(self, *arguments: str, number: int = -1) -> dict[str, Any]:
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)
        (self.folder / RESULT).unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        path = f"{self.folder}:{self.folder / 'app'}"
        try:
            done = subprocess.run(
                [*command, "-p", "robustness.mutant_switch", *arguments], cwd=self.folder, text=True,
                env=os.environ | {"PYTHONPATH": path, "GICCS_MUTANT": str(number)},
                capture_output=True, timeout=TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"failed": ["timeout"]}
        if not (self.folder / RESULT).exists():
            return {"failed": [f"exit code {done.returncode}"]}
        result: dict[str, Any] = json.loads((self.folder / RESULT).read_text("utf-8"))
        return result


def _extract(revision: str, path: str, folder: Path) -> None:
    archive = subprocess.run(
        ["git", "archive", revision, path], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)


def _copy(folder: Path, tests: str) -> Path:
    """Write the committed code to a folder, with the tests of a revision."""
    folder.mkdir()
    _extract("HEAD", ".", folder)
    if tests != "HEAD":
        shutil.rmtree(folder / "tests")
        _extract(tests, "tests", folder)
    shutil.copy(mutant_switch.__file__, folder / "robustness")
    return folder


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="robustness.mutants")
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help=f"default: {' '.join(TESTS)}"
    )
    parser.add_argument("-n", type=int, default=60, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", help="revision whose tests are compared with the present ones")
    options = parser.parse_args(arguments)
    options.packages = options.packages or list(TESTS)
    if unknown := set(options.packages) - set(TESTS):
        parser.error(f"no such package: {', '.join(sorted(unknown))}; expected {', '.join(TESTS)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the check; return 1 if the tests of --tests find a mutant that the present ones do not."""
    options = _options(arguments)
    revisions = ["HEAD", *filter(None, [options.tests])]
    with tempfile.TemporaryDirectory(prefix="giccs-mutants-") as name:
        folders = [_copy(Path(name) / revision, revision) for revision in revisions]
        mutants = draw(folders[0], options.packages, options.n, options.seed)
        changes, *_ = [insert_switches(folder, mutants) for folder in folders]
        suites = [Suite(folder, options.packages) for folder in folders]
        for revision, suite in zip(revisions, suites, strict=True):
            print(f"{revision}: {len(suite.failures)} tests fail without mutants", flush=True)
        finders = []
        for number, change in enumerate(changes):
            finders.append([suite.find(number) for suite in suites])
            outcomes = [
                f"{revision}: {finder or 'SURVIVED'}"
                for revision, finder in zip(revisions, finders[-1], strict=True)
            ]
            print(f"{change}: {'; '.join(outcomes)}", flush=True)
    for revision, column in zip(revisions, zip(*finders, strict=True), strict=True):
        print(f"{revision}: {sum(map(bool, column))} of {options.n} mutants found")
    return int(any(former and not present for present, *rest in finders for former in rest))


if __name__ == "__main__":
    sys.exit(main())
