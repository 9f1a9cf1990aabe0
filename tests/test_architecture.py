"""Who may import whom (docs/contributing/architecture.md), read from the imports themselves."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
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
    "torch", "transformers", "sentence_transformers", "spacy", "boto3", "streamlit", "sklearn",
    "openai", "ray", "zuko", "pydantic",
}  # fmt: skip
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
GROUPS = {
    "giccs": WORKFLOW,
    "giccs data": DATA,
    "giccs annotate": HITS,
    "giccs annotate person": PERSON,
    "giccs annotate prolific": PROLIFIC,
    "giccs csts": CSTS,
    "giccs evalrank": EVALRANK,
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


def violations(module, path):
    allowed = ENTRY_POINTS.get(module, ALLOWED[module.split(".")[0]])
    forbidden = [
        target
        for prefix, targets in FORBIDDEN.items()
        if below(module, prefix)
        for target in targets
    ]
    for name in filter(ours, imports_of(path)):
        if not any(below(name, prefix) or below(prefix, name) for prefix in allowed):
            yield f"{path}: {name} is not among {allowed}"
        own = any(below(name, prefix) for prefix in FORBIDDEN if below(module, prefix))
        if not own and any(below(name, target) for target in forbidden):
            yield f"{path}: {name} is in a later layer"


def test_imports_follow_the_rule(tmp_path):
    found = [*modules()]
    assert len(found) > 400
    assert [line for module, path in found for line in violations(module, path)] == []
    path = tmp_path / "probe.py"
    path.write_text("import giccs.models\nfrom giccs.tasks import Task\nimport mturk.cli\n")
    assert len([*violations("giccs.models.probe", path)]) == 3
    assert [*violations("giccs_app.probe", path)] == []


def at_run_time(node):
    """Yield the imports of a tree, also those inside functions, without those for type checkers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from ([alias.name] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ([f"{node.module}.{alias.name}", node.module] for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from at_run_time(child)


def test_no_modules_import_one_another():
    paths = dict(modules())
    graph = {}
    for module, path in paths.items():
        needed = graph.setdefault(module, set())
        for names in at_run_time(ast.parse(path.read_text("utf-8"))):
            first = next((name for name in names if name in paths), None)
            needed |= {first} if first else set()
        needed.discard(module)
    TopologicalSorter(graph).prepare()  # CycleError shows a circle


def test_every_command_of_the_package_is_found_by_these_tests():
    assert {"giccs-eval", "bws-score", "giccs-demo"} <= SCRIPTS.keys()


LOADED = f"""
import sys
HEAVY = {HEAVY}
seen = set()
def newly_loaded():
    global seen
    new, seen = HEAVY & {{*sys.modules}} - seen, HEAVY & {{*sys.modules}}
    return sorted(new)
"""


def printed_lines(code, *paths):
    """Return what a new process prints; it has a function for the frameworks loaded since the last call."""
    path = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", LOADED + code],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


HELP_OF_ALL = """
import json
from importlib import import_module
from click.testing import CliRunner
for script, target in json.loads(sys.argv[1]).items():
    module, function = target.split(":")
    command = getattr(import_module(module), function)
    done = CliRunner().invoke(command, ["--help"], prog_name=script)
    print(json.dumps([script, done.exit_code, newly_loaded(), done.stdout]))
"""


def test_help_shows_an_example_and_loads_no_framework():
    """Of all commands in one process, which loads more and more: a framework is reported where it appears."""
    code = f"import sys; sys.argv[1:] = [{json.dumps(COMMANDS)!r}]\n{HELP_OF_ALL}"
    answers = [json.loads(line) for line in printed_lines(code)]
    assert [script for script, *_ in answers] == [*COMMANDS]
    problems = []
    for script, code, loaded, text in answers:
        if code or loaded:
            problems.append(f"{script}: exit code {code}, loads {loaded}")
        if script not in text.partition("Example:")[2]:
            problems.append(f"{script}: no example")
        problems += [
            f"{script}: no {option}"
            for option in ("--json", "--quiet", "--version")
            if option not in text
        ]
    assert problems == []


@pytest.mark.parametrize("script", ["bws-score", "giccs", "giccs-eval", "mturk-hits", "giccs-csts"])
def test_help_of_the_console_script(script):
    program = Path(sys.executable).with_name(script)
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    assert script in done.stdout.partition("Example:")[2]
    assert done.stderr == ""


LIGHT_WORK = [
    "import bws, giccs, bws.records",
    "from giccs.benchmark import read_benchmark; read_benchmark('giccs-sample')",
    "from giccs.measures.results import Store; from giccs.report import report",
    "from giccs.models import open_model; open_model('baseline:chance')",
    "from giccs_app.explorer.models import charts, data; import giccs_app.report.html",
]


def test_light_work_loads_no_framework(tmp_path):
    """The last piece of code loads one, so that the test sees one."""
    (tmp_path / "zuko.py").touch()
    code = "".join(f"{line}\nprint(newly_loaded())\n" for line in [*LIGHT_WORK, "import zuko"])
    assert printed_lines(code, tmp_path) == ["[]"] * len(LIGHT_WORK) + ["['zuko']"]
