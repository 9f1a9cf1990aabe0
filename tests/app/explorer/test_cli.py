"""giccs explore: what it starts, and what it refuses."""

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import chdir, closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bws.design import make_tuples
from bws.files import read_judgments, write_judgments
from bws.simulation import simulate
from giccs.benchmark import sample_file
from giccs_app.explorer import cli
from mturk.kinds.sentence_pairs import SentencePart
from mturk.study.client import LOCAL
from mturk.study.plan import HitPlan
from mturk.study.settings import Settings
from tests.free_ports import free_ports


def free_port():
    (port,) = free_ports()
    return port


@pytest.fixture
def served(monkeypatch):
    """Return what would be served: Streamlit's settings, and the page's arguments."""
    calls = []
    monkeypatch.setattr(cli, "_serve", lambda *given: calls.append(given))
    return calls


@pytest.fixture(scope="module")
def shared_files(tmp_path_factory):
    """Return a folder with the sample, judgments of people and of models, and ledgers."""
    folder = tmp_path_factory.mktemp("files")
    with chdir(folder):
        write_files()
    return folder


def write_files():
    from mturk.study.ledger import Ledger

    for name, copy in (("benchmark.jsonl", "b.jsonl"), ("judgments.csv", "j.csv")):
        with sample_file("giccs-sample", name) as path:
            shutil.copy(path, copy)
    people = read_judgments("j.csv").select(np.arange(100))
    for name in ("m.csv", "o.csv"):
        one = np.zeros(100, dtype=people.annotator_of.dtype)
        runs = np.array([str(run) for run in range(100)], dtype=object)
        write_judgments(
            replace(
                people,
                annotators=np.array([f"model:{name}"], dtype=object),
                annotator_of=one,
                columns={"run": runs},
            ),
            name,
        )
    tuples = make_tuples(list("abcdef"), 3, count=6)
    write_judgments(simulate(tuples, np.arange(6) / 6, 3), "other.csv")
    Path("r").mkdir()
    dialogue, candidate = people.tuples.item_keys[0]
    of_others = SentencePart("t1", "", ("a", "b"))
    of_sample = SentencePart("t2", dialogue, (candidate, "a control item"))
    for name, parts in (("l.db", (of_others, of_sample)), ("of-others.db", (of_others,))):
        with Ledger.open(name, create=True) as ledger:
            plan = HitPlan(1, parts, "<HTMLQuestion/>", "annotation", "token")
            ledger.start_study(LOCAL, Settings(), [plan], 0.0)
    text = Path("other.csv").read_text()
    judgments_of_model = re.sub("simulated-[0-9]", "model:m", text).splitlines()
    rows = judgments_of_model[1::3]  # one of three judgments of each tuple
    Path("other-model.csv").write_text("\n".join([judgments_of_model[0], *rows, ""]))
    with closing(sqlite3.connect("other.db")) as database:
        database.execute("CREATE TABLE something (value)")
        database.commit()


@pytest.fixture
def files(shared_files, tmp_path, monkeypatch):
    """Go to a copy of the folder."""
    shutil.copytree(shared_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def test_what_is_named_is_passed_on_and_nothing_else(served, files):
    port = str(free_port())
    named = ["--data", "b.jsonl", "--judgments", "j.csv", "--results", "r", "--ledger", "l.db"]
    named += ["--model-judgments", "m.csv", "--model-judgments", "o.csv"]
    result = CliRunner().invoke(cli.explore, [*named, "--port", port, "--no-browser"])
    assert result.exit_code == 0, result.output
    settings, asked = served[0]
    assert asked[:4] == ["--data=b.jsonl", "--judgments=j.csv", "--results=r", "--ledger=l.db"]
    assert asked[4:] == ["--model-judgments=m.csv", "--model-judgments=o.csv"]
    assert {"--server.headless=true", f"--server.port={port}"} <= set(settings)
    assert f"http://127.0.0.1:{port}" in result.output


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--data", "missing.jsonl", "missing.jsonl: no such file"),
        ("--data", "j.csv", "this is a judgments file"),
        ("--judgments", "missing.csv", "missing.csv: no such file"),
        ("--judgments", "b.jsonl", "b.jsonl: "),
        ("--judgments", "m.csv", "m.csv (csv): 100 of 100 judgments are by language models"),
        (
            "--judgments",
            "other.csv",
            "other.csv: judgments of none of the items of giccs-sample; expected",
        ),
        ("--model-judgments", "missing.csv", "missing.csv: no such file"),
        ("--model-judgments", "j.csv", "3000 of 3000 judgments are by people"),
        ("--model-judgments", "other-model.csv", "other-model.csv: judgments of none of the items"),
        ("--results", "missing", "missing: no such folder of results"),
        ("--results", "j.csv", "j.csv: is a file"),
        ("--results", ".", ".: contains other files, but no results"),
        ("--ledger", "missing.db", "missing.db: no such ledger"),
        ("--ledger", "j.csv", "j.csv: cannot read the ledger"),
        ("--ledger", "other.db", "other.db: not a ledger"),
        ("--ledger", "of-others.db", "of-others.db: a study of none of the items of giccs-sample"),
    ],
)
def test_a_wrong_file_ends_the_command_before_the_server_starts(
    served, shared_files, monkeypatch, option, name, message
):
    monkeypatch.chdir(shared_files)
    arguments = [option, name, "--port", str(free_port()), "--no-browser"]
    result = CliRunner().invoke(cli.explore, arguments)
    assert (result.exit_code, served) == (2, []), result.output
    assert message in result.stderr
    assert "http://" not in result.output


def test_all_wrong_files_are_named_at_once(served, files):
    arguments = [
        "--judgments",
        "other.csv",
        "--results",
        ".",
        "--ledger",
        "j.csv",
    ]
    result = CliRunner().invoke(cli.explore, [*arguments, "--port", str(free_port())])
    assert (result.exit_code, served) == (2, [])
    names = [line.partition(":")[0] for line in result.stderr.splitlines()]
    assert names == ["other.csv", ".", "j.csv"]


def test_results_on_other_data_only_end_the_command(served, files):
    from giccs.cli.evaluation import evaluate

    arguments = [
        "baseline:chance",
        "--task",
        "pairwise-sts",
        "--data",
        "giccs-sample-en",
        "-o",
        "r",
    ]
    assert CliRunner().invoke(evaluate, arguments).exit_code == 0
    result = CliRunner().invoke(cli.explore, ["--results", "r", "--port", str(free_port())])
    assert (result.exit_code, served) == (2, [])
    assert "r: none of its 1 results is on giccs-sample; expected results on" in result.stderr
    arguments[arguments.index("giccs-sample-en")] = "giccs-sample"
    assert CliRunner().invoke(evaluate, arguments).exit_code == 0
    result = CliRunner().invoke(cli.explore, ["--results", "r", "--port", str(free_port())])
    assert (result.exit_code, len(served)) == (0, 1)


def test_results_of_tasks_with_their_own_data_are_shown(served, files):
    from giccs.cli.evaluation import evaluate

    arguments = ["baseline:chance", "--task", "csts", "-o", "r"]
    done = CliRunner().invoke(evaluate, arguments)
    assert done.exit_code == 0, done.output
    result = CliRunner().invoke(cli.explore, ["--results", "r", "--port", str(free_port())])
    assert (result.exit_code, len(served)) == (0, 1), result.output


def test_judgments_of_other_items_are_not_published(served, files):
    arguments = ["--judgments", "other.csv", "--export-space", "space"]
    result = CliRunner().invoke(cli.explore, arguments)
    assert result.exit_code == 2
    assert "other.csv: judgments of none of the items of giccs-sample" in result.stderr
    assert not Path("space").exists()


def test_without_arguments_it_is_the_sample_and_a_browser_opens(served):
    assert CliRunner().invoke(cli.explore, ["--port", str(free_port())]).exit_code == 0
    settings, asked = served[0]
    assert asked == ["--data=giccs-sample"]
    assert "--server.headless=false" in settings


def test_it_listens_on_this_machine_only_and_tells_nobody(served):
    CliRunner().invoke(cli.explore, ["--port", str(free_port())])
    assert {
        "--server.address=127.0.0.1",
        "--browser.gatherUsageStats=false",
        "--client.showErrorDetails=none",
        "--server.maxUploadSize=200",
    } <= set(served[0][0])


def test_a_port_that_is_taken_is_one_line(served):
    with socket.socket() as taken:
        taken.bind((cli.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(cli.explore, ["--port", str(port)])
    assert (result.exit_code, served) == (1, [])
    assert (
        result.output
        == f"Error: port {port} is in use; stop the program that uses it, or choose another --port\n"
    )


def test_judgments_of_models_are_not_published(served, tmp_path):
    arguments = ["--model-judgments", "m.csv", "--export-space", str(tmp_path / "space")]
    result = CliRunner().invoke(cli.explore, arguments)
    assert result.exit_code == 2
    assert "judgments of models are not published" in result.output
    assert not (tmp_path / "space").exists()


@pytest.mark.parametrize("port", ["0", "65536", "x"])
def test_what_is_no_port_is_refused(served, port):
    assert CliRunner().invoke(cli.explore, ["--port", port]).exit_code == 2


def test_without_streamlit_it_says_what_to_install(served, monkeypatch):
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    result = CliRunner().invoke(cli.explore, [])
    assert (
        result.output
        == "Error: giccs explore needs Streamlit; install it with: pip install 'giccs[app]'\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM on Windows")
def test_it_serves_until_it_is_told_to_end(tmp_path):
    pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")
    port = free_port()
    command = [sys.executable, "-c", "from giccs_app.explorer.cli import explore; explore()"]
    with subprocess.Popen(
        [*command, "--no-browser", "--port", str(port)],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    ) as server:
        try:
            assert any(f"http://127.0.0.1:{port}" in line for line in server.stdout)
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}/_stcore/health", timeout=30
            ) as answer:
                assert answer.read() == b"ok"
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=300) == 0


def test_pages_are_prepared_for_every_study(tmp_path):
    """The figures of Annotation and the dialogues are in the caches; unreadable data are left to the page."""
    from giccs_app.explorer.annotation import page as annotation
    from giccs_app.explorer.caching import study_of
    from giccs_app.explorer.cli import prepare_pages

    prepare_pages("giccs-sample", None, None, None)
    study = study_of("giccs-sample", None, None, None)
    assert "index_in_judgments" in vars(study)
    computed = annotation._figures(study.key, study.judgments)
    prepare_pages("giccs-sample", None, None, None)
    assert annotation._figures(study.key, study.judgments) is computed
    prepare_pages(str(tmp_path / "missing.jsonl"), None, None, None)
