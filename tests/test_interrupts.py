"""Ctrl-C: one line and what is kept, wherever it comes; never a traceback."""

import ast
import importlib.util
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.fork_server import ForkServer

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "giccs" / "data"
DIALOGUES, JUDGMENTS = SAMPLE / "dialogues.jsonl", SAMPLE / "judgments.csv"
SITECUSTOMIZE = """
import os, signal, sys

class InterruptAtImport:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("INTERRUPT_AT"):
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, InterruptAtImport())
"""
FILES = "output files are complete or unchanged"
PUBLISH = f"publish {{tuples}} --dialogues {DIALOGUES} --endpoint http://127.0.0.1:9"
BEFORE_CLICK = ("click", "bws.base.commands")
CALLS = [
    ("bws-score", f"{JUDGMENTS} --bootstrap 100", "scipy.sparse", FILES),
    ("bws-reliability", f"{JUDGMENTS}", "bws.split_half", FILES),
    ("bws-agreement", f"{JUDGMENTS} --bootstrap 9", "bws.chance_agreement", FILES),
    ("bws-make-tuples", f"{DIALOGUES} -k 3 --tuples 2", "bws.design.make", FILES),
    ("bws-simulate", f"{{tuples}} --truth {DIALOGUES} --annotators 2", "bws.simulation", FILES),
    ("giccs-eval", "baseline:chance -o r", "giccs.evaluation.run", "finished results are in r; repeat"),
    ("giccs-eval", "package:minilm -o r", "transformers", "finished results are in r; repeat"),
    ("giccs-csts", "train csts-sample --model package:minilm -o r", "torch",
     "finished epochs are in r; repeat the command to resume"),
    ("giccs", "init s", "mturk.study.settings_file", "s is complete or does not exist"),
    ("giccs-demo", "-o d", "giccs_app.demo.pipeline", "finished steps are in d; run the same command"),
    ("giccs-explore", "--no-browser", "pandas", "all files are unchanged"),
    ("mturk-hits", "serve --db h.db --port 0", "starlette",
     "all HITs and assignments are stored in the database"),
    ("mturk-hits", PUBLISH, "mturk.study.client", "published HITs are recorded in ledger.db"),
    ("mturk-hits", f"simulate --truth {DIALOGUES} --workers 2", "mturk.study.simulated_workers",
     "all submitted assignments are stored at the service"),
]  # fmt: skip
"""Console script, arguments, the module at whose import the interrupt comes, and text of it."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE, "utf-8")
    (folder / "tuples.csv").write_text(
        "tuple_id,group,item1,item2,item3\n"
        "t1,restaurant-01,restaurant-01-a,restaurant-01-b,restaurant-01-c\n"
    )
    return folder


@pytest.fixture(scope="module")
def fork_server(files, tmp_path_factory):
    """Return a fork server that has imported none of the modules at which interrupts come."""
    folder = tmp_path_factory.mktemp("server")
    server = ForkServer(
        folder, ("click", "numpy", "polars"), {}, environment={"PYTHONPATH": str(files)}
    )
    yield server
    server.close()


def interrupted(files, folder, script, arguments, module):
    """Run a console script in a new interpreter."""
    python_path = os.pathsep.join([str(files), str(ROOT), str(ROOT / "app")])
    return subprocess.run(
        [Path(sys.executable).with_name(script),
         *arguments.format(tuples=files / "tuples.csv").split()],
        env={**os.environ, "PYTHONPATH": python_path, "INTERRUPT_AT": module, "HF_HUB_OFFLINE": "1"},
        cwd=folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("script", "module"),
    [
        ("bws-score", "click"),
        ("giccs", "bws.base.commands"),
        ("mturk-hits", "click"),
        ("giccs-eval", "bws.base.commands"),
    ],
)
def test_an_interrupt_at_start_is_one_line(files, tmp_path, script, module):
    done = interrupted(files, tmp_path, script, "--help", module)
    assert done.stderr.split() == ["Aborted!"]
    assert done.returncode == -signal.SIGINT
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        ("--help", "bws.analysis.registry"),
        ("csts --help", "giccs.csts.cli"),
    ],
)
def test_an_interrupt_of_the_help_has_the_exit_code(files, tmp_path, arguments, module):
    done = interrupted(files, tmp_path, "giccs", arguments, module)
    assert done.stderr.split() == ["Aborted!"]
    assert done.returncode == 130


def test_no_slow_module_is_imported_before_interrupts_are_handled():
    program = (
        "import sys; old = {*sys.modules}; import bws.base.interrupts; print(*{*sys.modules} - old)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {*done.stdout.split()} == {"bws", "bws.base", "bws.base.interrupts", "__future__"}


def test_every_script_handles_interrupts_before_other_imports():
    """The module of each console script, and the packages above it, which are imported before."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    late = {}
    for script, target in scripts.items():
        names = target.partition(":")[0].split(".")
        modules = [".".join(names[: n + 1]) for n in range(len(names))]
        first = next(filter(None, map(first_import, modules)), None)
        if first != ["from bws.base.interrupts import handle_interrupts", "handle_interrupts()"]:
            late[script] = first
    assert late == {}


def first_import(module):
    """Return the first import of a module, but those of the standard library, and the statement after it."""
    path = Path(importlib.util.find_spec(module).origin)
    body = ast.parse(path.read_text("utf-8")).body
    for number, node in enumerate(body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            if name.partition(".")[0] not in sys.stdlib_module_names:
                return [ast.unparse(statement) for statement in body[number : number + 2]]
    return None


@pytest.mark.parametrize(("script", "arguments", "module", "kept"), CALLS)
def test_an_interrupt_while_it_runs_says_what_is_kept(
    files, tmp_path, fork_server, script, arguments, module, kept
):
    done = fork_server.run(
        script, *arguments.format(tuples=files / "tuples.csv").split(),
        cwd=tmp_path, env={**os.environ, "INTERRUPT_AT": module, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    check_stopped(done, kept)


@pytest.mark.parametrize(("script", "arguments", "module", "kept"), [CALLS[0], CALLS[8]])
def test_an_interrupt_of_a_new_interpreter(files, tmp_path, script, arguments, module, kept):
    check_stopped(interrupted(files, tmp_path, script, arguments, module), kept)


def check_stopped(done, kept):
    assert "Traceback" not in done.stderr
    assert f"stopped: {kept}" in done.stderr
    assert done.stderr.strip().endswith("Aborted!")
    assert done.returncode == 130


def test_an_interrupt_in_a_callback_of_the_interpreter_is_not_lost():
    program = """
import os, signal, time
from bws.base.interrupts import handle_interrupts
handle_interrupts()
class Freed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
freed = Freed()
del freed
time.sleep(30)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=25,
    )  # fmt: skip
    assert done.stderr.split() == ["Aborted!"]
    assert done.returncode == -signal.SIGINT


def test_other_errors_are_shown_as_before():
    program = "import bws.cli\n1 / 0"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=25,
    )  # fmt: skip
    assert "ZeroDivisionError" in done.stderr
    assert done.returncode == 1
