"""Ctrl-C: one line and what is kept, wherever it comes; never a traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "giccs" / "data"
DIALOGUES, JUDGMENTS = SAMPLE / "dialogues.jsonl", SAMPLE / "judgments.csv"
SITECUSTOMIZE = """
import os, signal, sys

class InterruptAtImport:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, InterruptAtImport())
"""
FILES = "output files are complete or unchanged"
PUBLISH = f"publish {{tuples}} --dialogues {DIALOGUES} --endpoint http://127.0.0.1:9"
BEFORE_CLICK = ("click", "bws.command")
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
    ("mturk-hits", PUBLISH, "boto3", "published HITs are recorded in ledger.db"),
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


def interrupted(files, folder, script, arguments, module):
    python_path = os.pathsep.join([str(files), str(ROOT), str(ROOT / "app")])
    return subprocess.run(
        [Path(sys.executable).with_name(script),
         *arguments.format(tuples=files / "tuples.csv").split()],
        env={**os.environ, "PYTHONPATH": python_path, "INTERRUPT_AT": module, "HF_HUB_OFFLINE": "1"},
        cwd=folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("module", BEFORE_CLICK)
@pytest.mark.parametrize("script", sorted({script for script, *_ in CALLS}))
def test_an_interrupt_at_start_is_one_line(files, tmp_path, script, module):
    done = interrupted(files, tmp_path, script, "--help", module)
    assert done.stderr.split() == ["Aborted!"]
    assert done.returncode == -signal.SIGINT
    assert done.stdout == ""


@pytest.mark.parametrize(("script", "arguments", "module", "kept"), CALLS)
def test_an_interrupt_while_it_runs_says_what_is_kept(
    files, tmp_path, script, arguments, module, kept
):
    done = interrupted(files, tmp_path, script, arguments, module)
    assert "Traceback" not in done.stderr
    assert f"stopped: {kept}" in done.stderr
    assert done.stderr.strip().endswith("Aborted!")
    assert done.returncode == 1


def test_an_interrupt_in_a_callback_of_the_interpreter_is_not_lost():
    program = """
import os, signal, time
from bws.interrupts import handle_interrupts
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
