"""What other packages add by entry points is used like our own: the package on docs/how-to/plugins.md."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import giccs
from docs.generate_plugins import FILES, block
from mturk import catalogues

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "giccs-plugin"
HOW_TO = ROOT / "docs" / "how-to" / "plugins.md"
TABLES = {
    "left-right.csv": "left,right,better,poorer\na,b,a,b\na,c,c,a\nb,c,c,b\n",
    "sentences.csv": "id,sentence\ns1,The cat sleeps.\n",
    "hits.toml": 'kind = "acceptability"\ndialogue_language = "en"\n',
}
CALLS = {
    "format": ("score", "left-right.csv", "--json"),
    "kind": ("annotate", "estimate", "sentences.csv", "--config", "hits.toml", "--json"),
    "page": (
        "annotate",
        "preview",
        "sentences.csv",
        "--config",
        "hits.toml",
        "--no-browser",
        "-o",
        "-",
    ),
    "language": ("annotate", "check-texts", "--json"),
    "task": ("eval", "baseline:char-ngram", "--task", "top-candidate", "--json"),
    "option": ("eval", "baseline:char-ngram", "--task", "top-candidate", "--shots", "2"),
    "refused": ("eval", "package:smollm2", "--task", "top-candidate"),
    "model": ("eval", "words:jaccard", "--task", "pairwise-sts", "--limit", "6", "--json"),
}
PROGRAM = """
import json
import sys
from click.testing import CliRunner
from giccs_app.cli import main

calls = json.loads(sys.argv[1])
done = {name: CliRunner().invoke(main, arguments) for name, arguments in calls.items()}
results = {name: [one.exit_code, one.stdout, one.stderr] for name, one in done.items()}
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """Return exit code, output and errors of commands where the example project is installed."""
    folder = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source") / "giccs-plugin"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--target")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(folder), str(source)], check=True
    )
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])

    work = tmp_path_factory.mktemp("run")
    for name, text in TABLES.items():
        (work / name).write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(CALLS)],
        cwd=work, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_task_of_another_package_is_evaluated(called):
    code, output, errors = called["task"]
    assert code == 0, errors
    (result,) = json.loads(output)["results"]
    assert result["task"] == "top-candidate"
    accuracy = result["metrics"]["accuracy"]
    frame = giccs.evaluate("baseline:char-ngram").predictions()
    best = frame.loc[frame.groupby("dialogue_id")["prediction"].idxmax()]
    highest = frame.groupby("dialogue_id")["score"].max().loc[best["dialogue_id"]]
    assert accuracy["n"] == 60
    assert accuracy["value"] == pytest.approx((best["score"].array == highest.array).mean())


def test_its_options_are_checked(called):
    code, _, errors = called["option"]
    assert code == 2
    assert "--shots is for csts-prompt, not for top-candidate" in errors


def test_it_refuses_models_that_do_not_compare_texts(called):
    code, _, errors = called["refused"]
    assert code == 2
    assert "top-candidate requires an encoder" in errors


def test_a_model_of_another_package_is_evaluated(called):
    code, output, errors = called["model"]
    assert code == 0, errors
    (result,) = json.loads(output)["results"]
    assert result["model"] == "words:jaccard"
    assert result["signature"]["kind"] == "words"


def test_a_format_of_judgments_is_detected(called):
    code, output, errors = called["format"]
    assert code == 0, errors
    document = json.loads(output)
    assert document["source"] == "left-right.csv (left-right)"
    assert {row["item"]: row["score"] for row in document["scores"]} == {"a": 0, "b": -1, "c": 1}


def test_a_kind_of_hit_is_planned_and_its_page_written(called):
    code, output, errors = called["kind"]
    assert code == 0, errors
    assert json.loads(output)["hits"] == 1
    code, page, errors = called["page"]
    assert code == 0, errors
    assert "The cat sleeps." in page
    assert "Rate each sentence" in page


def test_a_language_has_its_texts(called):
    code, output, errors = called["language"]
    assert code == 0, errors
    (texts,) = [row for row in json.loads(output)["languages"] if row["language"] == "lb"]
    assert texts["texts"] - len(texts["missing"]) == 3
    assert "nav.work" not in texts["missing"]


def test_an_entry_point_without_its_catalogue_is_refused(tmp_path, monkeypatch):
    info = tmp_path / "empty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: empty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mturk.languages]\nlb = json\n")
    monkeypatch.syspath_prepend(tmp_path)
    catalogues.installed_folders.cache_clear()
    with pytest.raises(ValueError, match=r"mturk\.languages: lb = 'json' has no file lb\.po"):
        catalogues.available_languages()
    monkeypatch.undo()
    catalogues.installed_folders.cache_clear()


def test_the_documentation_shows_the_example():
    """To write the files to the page: make cli."""
    page = HOW_TO.read_text("utf-8")
    files = {
        str(path.relative_to(EXAMPLE))
        for path in EXAMPLE.rglob("*")
        if "__pycache__" not in path.parts
    }
    shown = {*FILES.values()}
    assert files - shown == {"acceptability", "luxembourgish", "luxembourgish/__init__.py"}
    for file in shown:
        assert block(file) in page
