"""giccs evalrank build and levels as a person calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bws.stats.estimates import Estimate
from giccs.evalrank.cli import COMMANDS, main
from giccs.measures.results import Group, Result, Store

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
PUBLISHED = SHARED / "data" / "evalrank"


def call(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("sun sky 9\nsun sea 8\nsea sky 7\nsun sun 6\n", "utf-8")
    return path


def test_words_with_frequent_words(words, tmp_path):
    frequent = tmp_path / "frequent.txt"
    frequent.write_text("the\nof\nand\n", "utf-8")
    new = tmp_path / "new"
    done = call("build", words, "-o", new, "--frequent", frequent)
    assert done.exit_code == 0, done.output
    assert (
        "2 positive pairs, counting both directions; of 1 selected pairs, 0 repeat" in done.stdout
    )
    assert "6 background texts, 3 of them from the sets" in done.stdout
    assert (new / "pos_pair.txt").read_text("utf-8") == "sun\tsky\nsky\tsun\n"
    assert (new / "wiki_vocab.txt").read_text("utf-8") == "the\nof\nand\n"
    assert json.loads((new / "build.json").read_text("utf-8"))["frequent_file"] == str(frequent)


def test_several_files_with_named_columns(tmp_path):
    for name in "ab":
        rows = "".join(f"{name}{n},{name}{n + 1},{n}\n" for n in range(4))
        (tmp_path / f"{name}.csv").write_text(f"left,right,mean\n{rows}", "utf-8")
    call_ = ["build", tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "new", "--json"]
    done = call(*call_, "--columns", "left, right,mean", "--top", 0.5)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert [(source["name"], source["chosen"], source["cut"]) for source in document["sources"]] == [
        ("a", 2, 2.0), ("b", 2, 2.0),
    ]  # fmt: skip
    assert document["pairs"] == 8
    again = call(*call_, "--columns", "left,right,mean")
    assert (again.exit_code, again.stderr) == (
        2, f"{tmp_path}/new: already exists and is not an empty folder; expected a new or empty folder\n",
    )  # fmt: skip


def test_all_faults_of_all_files(tmp_path, words):
    (tmp_path / "a.txt").write_text("sun sea high\n", "utf-8")
    (tmp_path / "b.txt").write_text("sun sea 3\nsun\n", "utf-8")
    done = call("build", tmp_path / "b.txt", words, tmp_path / "none", "-o", tmp_path / "new")
    assert done.exit_code == 2
    assert done.stderr == (
        f"{tmp_path}/b.txt:2: 1 fields; expected 3\n{tmp_path}/none: no such file\n"
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "y", "--preset", "words"], "--preset requires exactly one folder, without --top"),
        (
            ["x", "--preset", "words", "--top", "0.5"],
            "--preset requires exactly one folder, without --top",
        ),
        (["x", "--columns", "a,b"], "--columns is 'a,b'; expected three names"),
        (["x", "--top", "0"], "0 is not in the range 0<x<=1"),
        (["x"], "x: no such file"),
        (
            ["x", "--preset", "sentences"],
            "x: no sources; expected at least one of sent_similarity/STS/STSBenchmark",
        ),
    ],
)
def test_what_cannot_be_done_is_said(arguments, message, tmp_path):
    done = call("build", *arguments, "-o", tmp_path / "new")
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"{PUBLISHED} is not there; set GICCS_SHARED")
def test_the_presets_say_how_close_they_come(tmp_path):
    done = call("build", PUBLISHED, "--preset", "words", "-o", tmp_path / "words")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("identical to the published file") == 3
    published = (PUBLISHED / "word_evalrank" / "pos_pair_5514.txt").read_bytes()
    assert (tmp_path / "words" / "pos_pair.txt").read_bytes() == published
    done = call("build", PUBLISHED, "--preset", "sentences", "-o", tmp_path / "sentences", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["compared"]["pos_pair.txt"]["only_here"] == 0


def stored(folder, model, task="sentence-similarity", by="[5, 3]", value=0.5):
    """A result that no model gave: its numbers are made up."""
    groups = (Group({"level": by}, {"spearman": Estimate(value, 0.4, 0.6, 30)}),)
    signature = {"model": model, "setting": "cos", "data": "0" * 64}
    Store(folder).add(Result(model, task, {}, groups, signature, {"data": "sts/"}, 0.1))


def test_levels_are_drawn(tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    stored(tmp_path / "results", "one")
    stored(tmp_path / "results", "two", by="[2, 0]")
    stored(tmp_path / "results", "three", value=float("nan"))
    done = call("levels", tmp_path / "results", "-o", tmp_path / "levels.svg", "--json")
    assert done.exit_code == 0, done.output
    assert [(row["model"], row["level"], row["data"]) for row in json.loads(done.stdout)["rows"]] == [
        ("one (cos)", "[5, 3]", "sts"), ("two (cos)", "[2, 0]", "sts"),
    ]  # fmt: skip
    drawn = (tmp_path / "levels.svg").read_text("utf-8")
    assert drawn.startswith("<svg")
    assert "two (cos)" in drawn
    assert "[2, 0]" in drawn


def test_levels_that_cannot_be_drawn(tmp_path):
    stored(tmp_path / "results", "one", task="word-similarity")
    done = call("levels", tmp_path / "results", "-o", tmp_path / "levels.svg")
    assert done.exit_code == 2
    assert done.stderr.endswith("no results of sentence-similarity with levels\n")
    assert call("levels", tmp_path / "results", "-o", "levels.gif").exit_code == 2


def test_help_loads_none_of_a_framework():
    assert {"build", "levels", "correlate"} == COMMANDS.keys()
    code = (
        "import sys\nfrom giccs.evalrank.cli import main\n"
        "for name in ('build', 'levels', 'correlate'):\n"
        "    try: main([name, '--help'], prog_name='giccs evalrank')\n"
        "    except SystemExit as end: assert not end.code\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'scipy', 'numpy', 'polars', 'altair'}\n"
        "print('LOADED', *(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED"
    assert "giccs evalrank build data/ --preset words -o words" in done.stdout
