"""Who may import whom (docs/contributing/architecture.md), read from the imports themselves."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from giccs.csts.cli import COMMANDS as CSTS
from giccs.evalrank.cli import COMMANDS as EVALRANK
from giccs_app.cli import COMMANDS as WORKFLOW
from giccs_app.packaged_data import COMMANDS as DATA
from mturk.cli import COMMANDS as HITS
from mturk.cli.person import COMMANDS as PERSON
from mturk.cli.prolific import COMMANDS as PROLIFIC

ROOT = Path(__file__).parents[1]
PACKAGES = {"bws": ROOT, "giccs": ROOT, "mturk": ROOT, "giccs_app": ROOT / "app"}
HEAVY = {
    "torch", "transformers", "sentence_transformers", "spacy", "boto3", "streamlit", "faiss", "sklearn",
    "openai", "ray", "zuko",
}  # fmt: skip
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
GROUPS = {
    "giccs": WORKFLOW,
    "giccs data": DATA,
    "mturk-hits": HITS,
    "mturk-hits person": PERSON,
    "mturk-hits prolific": PROLIFIC,
    "giccs-csts": CSTS,
    "giccs-evalrank": EVALRANK,
}
COMMANDS = SCRIPTS | {
    f"{group} {name}": target for group, below in GROUPS.items() for name, target in below.items()
}

# package or module -> what of ours it may import (a prefix covers what lies below it)
ALLOWED = {
    "bws": ["bws"],
    "giccs": ["bws", "giccs"],
    "mturk": [
        "bws",
        "giccs.benchmark",
        "giccs.cli.options",
        "mturk",
    ],
    "giccs_app": ["bws", "giccs", "mturk", "giccs_app"],
}
ENTRY_POINTS = {"giccs.__main__": ["giccs_app.cli"]}  # python -m giccs
LAYERS = (
    ("giccs.benchmark", "giccs.caching", "giccs.journal", "giccs.progress"),
    ("giccs.measures", "giccs.description", "giccs.preparation"),
    ("giccs.models", "giccs.prompts", "giccs.recipes"),
    ("giccs.tasks",),
    ("giccs.evaluation", "giccs.judging", "giccs.report"),
    ("giccs.cli", "giccs.interface"),
    ("giccs.csts", "giccs.evalrank"),
)
"""Inside giccs imports run from later rows to earlier ones."""
FORBIDDEN = {
    module: [above for later in LAYERS[row + 1 :] for above in later]
    for row, modules in enumerate(LAYERS)
    for module in modules
} | {"giccs.benchmark.items": ["giccs"]}


def modules():
    for package, root in PACKAGES.items():
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide who imports whom"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def below(name, prefix):
    return name == prefix or name.startswith(f"{prefix}.")


def ours(name):
    return any(below(name, package) for package in PACKAGES)


@pytest.mark.parametrize(("module", "path"), [*modules()], ids=lambda value: str(value)[-40:])
def test_imports_follow_the_rule(module, path):
    allowed = ENTRY_POINTS.get(module, ALLOWED[module.split(".")[0]])
    forbidden = [
        target
        for prefix, targets in FORBIDDEN.items()
        if below(module, prefix)
        for target in targets
    ]
    for name in filter(ours, imports_of(path)):
        assert any(below(name, prefix) or below(prefix, name) for prefix in allowed), name
        own = any(below(name, prefix) for prefix in FORBIDDEN if below(module, prefix))
        assert own or not any(below(name, target) for target in forbidden), name


def test_every_command_of_the_package_is_found_by_these_tests():
    assert {"giccs-eval", "bws-score", "giccs-demo"} <= SCRIPTS.keys()


def loaded_by(code):
    listing = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split()) & HEAVY


@pytest.mark.parametrize("script", COMMANDS)
def test_help_shows_an_example_and_loads_no_framework(script):
    module, function = COMMANDS[script].split(":")
    code = (
        f"from {module} import {function} as command\n"
        f"try: command(['--help'], prog_name={script!r})\n"
        "except SystemExit as end: assert not end.code"
    )
    listing = f"import sys\n{code}\nprint('MODULES', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    )
    text, _, names = done.stdout.partition("MODULES")
    assert not set(names.split()) & HEAVY
    example = text.partition("Example:")[2]
    assert script in example
    for option in ("--json", "--quiet", "--version"):
        assert option in text


@pytest.mark.parametrize(
    "code",
    [
        "import bws, giccs, bws.records",
        "from giccs.benchmark import read_benchmark; read_benchmark('giccs-sample')",
        "from giccs.measures.results import Store; from giccs.report import report",
        "from giccs.models import open_model; open_model('baseline:chance')",
        "from giccs_app.explorer.models import charts, data; import giccs_app.report.html",
    ],
)
def test_light_work_loads_no_framework(code):
    assert loaded_by(code) == set()


def test_the_check_itself_sees_a_framework():
    assert loaded_by("import torch") >= {"torch"}
