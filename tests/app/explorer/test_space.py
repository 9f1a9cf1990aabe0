"""giccs explore --export-space: what the folder contains, and that it runs."""

import shutil
import socket
import subprocess
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from huggingface_hub import metadata_load

from bws.files import read_judgments, write_judgments
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.cli.evaluation import evaluate
from giccs.measures.results import Store
from giccs_app.explorer.cli import explore
from giccs_app.explorer.study import load
from giccs_app.report.reading import MAX_DIALOGUES, reading_section

from .test_browser import one_window, opening, wait_for


def export(*arguments):
    return CliRunner().invoke(explore, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    arguments = ["baseline:chance", "-o", str(folder), "--quiet"]
    assert CliRunner().invoke(evaluate, arguments).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def space(results, tmp_path_factory):
    """The folder of giccs-sample with a result."""
    folder = tmp_path_factory.mktemp("export") / "space"
    result = export("--results", results, "--export-space", folder)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def without_report(monkeypatch):
    """Leave out the report, which takes most of the time, from folders of which other files are tested."""
    monkeypatch.setattr("giccs_app.explorer.space._write_page", lambda data, simulated: "")


@pytest.fixture
def named_judgments(tmp_path):
    """Judgments of giccs-sample by people with names, who wrote comments."""
    judgments = load().judgments
    names = [f"anna{n}@example.org" for n in range(len(judgments.annotators))]
    comment = np.full(len(judgments), "my name is Anna", dtype=object)
    seconds = np.full(len(judgments), "7", dtype=object)
    path = tmp_path / "named.csv"
    columns = {"seconds": seconds, "comment": comment, "Input.phone": comment}
    write_judgments(
        replace(judgments, annotators=np.array(names, dtype=object), columns=columns), path
    )
    return path


def test_the_folder_contains_the_data_and_what_a_space_runs(space, results):
    sample = read_benchmark("giccs-sample")
    assert read_benchmark(space / "data/benchmark.jsonl").fingerprint == sample.fingerprint
    copied = {path.name for path in (space / "data/results").glob("*--*--*")}
    assert copied == {path.name for path in results.glob("*--*--*")}
    assert len(copied) == 2
    settings = tomllib.loads((space / ".streamlit/config.toml").read_text())
    assert settings["server"]["port"] == 7860
    assert settings["browser"]["gatherUsageStats"] is False
    front = front_matter(space)
    assert (front["sdk"], front["app_port"], front["license"]) == ("docker", 7860, "cc-by-4.0")
    assert front["title"] == "Explorer and leaderboard of giccs-sample"
    assert front["tags"] == ["leaderboard"]
    assert {"models", "datasets"}.isdisjoint(front)  # neither is on the hub
    readme = (space / "README.md").read_text()
    assert "Simulated data" in readme
    assert "and 1 results of models" in readme
    assert "All dialogues" in (space / "data/report.html").read_text()


def front_matter(space):
    """The metadata of the Space as the hub reads them."""
    return metadata_load(space / "README.md")


@pytest.mark.usefixtures("without_report")
def test_models_of_the_hub_are_metadata_of_the_space(tmp_path, results):
    store = Store(tmp_path / "results")
    (result,) = Store(results).results()
    signature = {**result.signature, "revision": "0" * 40}
    store.add(replace(result, model="encoder:acme/bert", signature=signature))
    store.add(result)
    assert export("--results", store.folder, "--export-space", tmp_path / "space").exit_code == 0
    assert front_matter(tmp_path / "space")["models"] == ["acme/bert"]


@pytest.mark.usefixtures("without_report")
def test_without_results_there_is_no_leaderboard(tmp_path):
    assert export("--export-space", tmp_path / "space").exit_code == 0
    front = front_matter(tmp_path / "space")
    assert front["title"] == "Explorer of giccs-sample"
    assert "tags" not in front
    assert "eaderboard" not in (tmp_path / "space/README.md").read_text()


@pytest.mark.usefixtures("without_report")
def test_results_on_other_data_are_left_out_and_counted(tmp_path, results):
    store = Store(tmp_path / "results")
    (result,) = Store(results).results()
    store.add(replace(result, signature={**result.signature, "data": "0" * 64}))
    store.add(result)
    done = export("--results", store.folder, "--export-space", tmp_path / "space")
    assert done.exit_code == 0, done.output
    assert "1 results" in done.output
    assert "left out: 1 results on other data" in done.output
    assert len([*(tmp_path / "space/data/results").glob("*.json")]) == 1


def test_the_leaderboard_is_shown_by_the_program_of_the_space(space, chromium, tmp_path):
    """Start the folder as its README says, on another port, and open its leaderboard."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path / "server.log"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    with log.open("w") as log_file:
        server = subprocess.Popen(command, cwd=space, stdout=log_file, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}/"
        wait_for(f"{address}_stcore/health", server, log)
        with one_window(chromium) as window, opening(window, address) as open_page:
            page = open_page("?page=models")
            page.get_by_role("radio", name="Leaderboard", checked=True).wait_for()
            for row in ("baseline:chance", "noise ceiling"):  # of the chart
                page.get_by_text(row, exact=True).first.wait_for()
            assert page.get_by_text("Upload files").count() == 0
    finally:
        server.terminate()
        server.wait(120)


def test_it_runs_without_uploads(space, app_tester, monkeypatch):
    monkeypatch.chdir(space)
    page = app_tester.from_file(str(space / "app.py"), default_timeout=60)
    page.query_params["page"] = "models"
    page.run()
    assert not page.exception
    assert not page.error
    assert len(page.dataframe) == 1
    assert "Upload files" not in [expander.label for expander in page.expander]


def test_annotators_are_not_identified(tmp_path, named_judgments):
    space = tmp_path / "space"
    result = export("--judgments", named_judgments, "--export-space", space)
    assert result.exit_code == 0, result.output
    assert "without the columns comment, Input.phone" in result.output
    text = "".join(
        path.read_text() for path in space.rglob("*") if path.suffix not in ("", ".parquet")
    )
    assert "anna" not in text.lower()
    exported, original = (
        read_judgments(space / "data/judgments.csv"),
        read_judgments(named_judgments),
    )
    assert list(exported.columns) == ["seconds"]
    assert exported.annotators.tolist() == [f"#{n}" for n in range(1, 6)]
    assert (exported.best_item == original.best_item).all()


def test_what_exists_is_kept_and_a_failure_leaves_nothing(tmp_path, results):
    (tmp_path / "space").mkdir()
    (tmp_path / "space/mine").write_text("")
    assert "exists" in export("--export-space", tmp_path / "space").output
    broken = tmp_path / "results"
    shutil.copytree(results, broken)
    next(broken.glob("*.json")).write_text("{")
    result = export("--results", broken, "--export-space", tmp_path / "new")
    assert result.exit_code == 2
    assert str(broken) in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "space"]


def test_a_ledger_is_not_published(tmp_path):
    result = export("--ledger", "ledger.db", "--export-space", tmp_path / "space")
    assert result.exit_code == 2
    assert "not published" in result.output


def test_the_page_of_many_dialogues_shows_the_first_and_says_so():
    item = read_benchmark("giccs-sample").items[0]
    items = [replace(item, dialogue_id=f"d{n}") for n in range(MAX_DIALOGUES + 1)]
    section = reading_section(items, "b.jsonl")
    assert len(section.conversations) == MAX_DIALOGUES
    assert "The first 200 of 201 dialogues; all are in b.jsonl." in section.text


def test_candidates_are_sorted_by_score():
    item = read_benchmark("giccs-sample").items[0]
    items = [
        replace(item, utterance_id=name, score=score, utterance=name)
        for name, score in (("a", 0.1), ("b", 0.9))
    ]
    (conversation,) = reading_section(items, "").conversations
    assert conversation.candidates == [("0.90", "b"), ("0.10", "a")]


@pytest.mark.parametrize(
    ("languages", "missing", "reason", "has_report"),
    [
        (("de", "en"), "", "several languages (de: 5, en: 5); expected one", True),
        ((None,), "", "the data state no language", True),
        (("zxx",), "", "lang is 'zxx'; expected one of", True),
        (("de",), "lexicalrichness", "lexicalrichness is not installed", False),
    ],
)
def test_what_the_report_cannot_contain_is_left_out_and_said_on_the_terminal(
    tmp_path, monkeypatch, languages, missing, reason, has_report
):
    sample = read_benchmark("giccs-sample").first(2)
    language = dict(zip(sample.dialogue_ids, 2 * languages, strict=False))
    items = [replace(item, language=language[item.dialogue_id]) for item in sample.items]
    write_benchmark(items, tmp_path / "b.jsonl")
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    done = export("--data", tmp_path / "b.jsonl", "--export-space", tmp_path / "space")
    assert done.exit_code == 0, done.output
    assert "WARNING: " in done.stderr
    assert reason in done.stderr
    readme = (tmp_path / "space/README.md").read_text("utf-8")
    assert ("\n- data/report.html is the report" in readme) == has_report
    assert (tmp_path / "space/data/report.html").exists() == has_report
    assert "without data/report.html" not in readme
    for path in (tmp_path / "space").rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("utf-8", errors="replace")
            assert reason.partition(" (")[0] not in text
            assert "pip install 'giccs[stats]'" not in text
    if has_report:
        page = (tmp_path / "space/data/report.html").read_text("utf-8")
        assert 'id="scores"' in page
        assert 'id="statistics"' not in page
