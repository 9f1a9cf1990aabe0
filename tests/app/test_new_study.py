"""giccs init: the folder of a new study, whose README runs as it is written."""

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from giccs.benchmark import read_benchmark
from giccs_app.cli import main
from giccs_app.studies import cli
from giccs_app.studies.folders import write_new_folder
from mturk.study.settings_file import read_settings
from tests.nightly import first_in_ci, others_nightly

ROOT = Path(__file__).parents[2]
LANGUAGES = ("en", "de", "es")
PRESETS = ("relatedness", "sentiment", "plausibility")
FILES = ["README.md", "dialogues.csv", "hits.toml", "truth.csv"]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


def init(*arguments):
    return CliRunner().invoke(main, ["init", *map(str, arguments)], prog_name="giccs")


def commands_of(study, n_commands):
    commands = "".join(SHELL.findall((study / "README.md").read_text("utf-8")))
    assert commands.count("giccs ") == n_commands
    return commands


@pytest.fixture
def run_readme(monkeypatch):
    """Return a function that runs the commands of README.md in this process."""

    def run(study, n_commands):
        monkeypatch.chdir(study)
        for command in commands_of(study, n_commands).splitlines():
            words, _, output = command.partition(" > ")
            program, *arguments = shlex.split(words)
            done = CliRunner().invoke(main, arguments, prog_name=program)
            assert done.exit_code == 0, f"{command}: {done.output}"
            assert "warning" not in done.stderr, command
            if output:
                Path(output).write_text(done.stdout, "utf-8")

    return run


def run_in_shell(study, n_commands):
    python_path = os.pathsep.join([str(ROOT), str(ROOT / "app")])
    function = f'giccs() {{ "{sys.executable}" -m giccs "$@"; }}'
    done = subprocess.run(
        ["bash", "-c", f"{function}\nset -e\n{commands_of(study, n_commands)}"],
        cwd=study, env={**os.environ, "PYTHONPATH": python_path},
        capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize("language", others_nightly(LANGUAGES, "de"))
def test_the_steps_from_dialogues_to_a_comparison_run(tmp_path, run_readme, language):
    study = tmp_path / "my study"
    assert init(study, "--language", language).exit_code == 0
    run_readme(study, n_commands=18)
    benchmark = read_benchmark(study / "benchmark.jsonl")
    assert (len(benchmark.items), len(benchmark.dialogue_ids)) == (30, 6)
    assert {item.language for item in benchmark.items} == {language}
    assert all(item.absolute_score is not None for item in benchmark.items)
    assert f'lang="{language}"' in (study / "page.html").read_text("utf-8")
    assert "baseline:char-ngram" in (study / "table.tex").read_text("utf-8")
    assert read_settings(study / "hits.toml").language == language


@pytest.mark.nightly
def test_the_steps_run_in_a_shell(tmp_path):
    study = tmp_path / "my study"
    assert init(study).exit_code == 0
    run_in_shell(study, n_commands=18)
    assert "baseline:char-ngram" in (study / "table.tex").read_text("utf-8")


@pytest.mark.parametrize("in_shell", first_in_ci([False, True]))
def test_the_steps_of_a_study_of_conditions_run(tmp_path, run_readme, in_shell):
    assert init(tmp_path / "study", "--kind", "conditions", "--language", "de").exit_code == 0
    (run_in_shell if in_shell else run_readme)(tmp_path / "study", n_commands=2)
    page = (tmp_path / "study" / "page.html").read_text("utf-8")
    assert 'lang="de"' in page
    assert "Ein brauner Hund schläft auf einem Sofa." in page


@pytest.mark.parametrize(
    ("preset", "language"),
    others_nightly(product(PRESETS, LANGUAGES), *zip(PRESETS, LANGUAGES, strict=True)),
)
def test_the_steps_of_a_study_of_plain_items_run(tmp_path, run_readme, preset, language):
    study = tmp_path / "study"
    result = init(study, "--preset", preset, "--language", language)
    assert result.exit_code == 0, result.output
    run_readme(study, n_commands=7)
    page = (study / "page.html").read_text("utf-8")
    assert f'lang="{language}"' in page
    items = list(csv.DictReader((study / "items.csv").open(encoding="utf-8")))
    shown = [text for row in items if (text := row.get("text") or row["sentence1"]) in page]
    assert len(shown) >= len(items) / 2
    scores = {row["item"]: row for row in csv.DictReader((study / "scores.csv").open())}
    assert scores.keys() == {row["item"] for row in items}
    highest = max(items, key=lambda row: float(row["score"]))
    lowest = min(items, key=lambda row: float(row["score"]))
    assert float(scores[highest["item"]]["score"]) > 0.3
    assert float(scores[lowest["item"]]["score"]) < -0.3


def test_a_preset_of_items_is_no_study_of_conditions(tmp_path):
    result = init(tmp_path / "s", "--kind", "conditions", "--preset", "sentiment")
    assert result.exit_code == 2
    assert "--preset sentiment is for --kind tuples" in result.stderr
    assert not (tmp_path / "s").exists()


def test_the_levels_fit_the_candidates_of_all_languages():
    """truth.csv has a level per candidate of all languages, from unrelated to a paraphrase."""
    templates = ROOT / "app" / "giccs_app" / "studies" / "templates" / "tuples"
    rows = {
        language: (templates / language / "dialogues.csv").read_text("utf-8").splitlines()[1:]
        for language in ("en", "de", "es")
    }
    truth = (templates / "truth.csv").read_text().splitlines()[1:]
    ids = [row.split(",")[0] for row in rows["en"]]
    for language in ("de", "es"):
        assert ids == [row.split(",")[0] for row in rows[language]]
    assert [row.split(",")[:2] for row in truth] == [[f"{i}-{x}", i] for i in ids for x in "abcde"]
    for i in ids:
        assert {row[-1] for row in truth if row.startswith(f"{i}-")} == set("12345")


def test_the_folder_has_these_files_and_the_answer_names_them(tmp_path):
    result = init(tmp_path / "new" / "study", "--json")
    assert sorted(path.name for path in (tmp_path / "new" / "study").iterdir()) == FILES
    assert '"language": "en"' in result.stdout
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["study"]


def test_a_language_without_example_data_gets_the_english_ones_and_a_note(tmp_path, monkeypatch):
    ignored = shutil.ignore_patterns("es")
    templates = shutil.copytree(cli.TEMPLATES, tmp_path / "templates", ignore=ignored)
    monkeypatch.setattr(cli, "TEMPLATES", templates)
    result = init(tmp_path / "study", "--language", "es")
    assert "the example data are in English; replace them by your own in es" in result.stderr
    assert "museum" in (tmp_path / "study" / "dialogues.csv").read_text("utf-8")
    assert read_settings(tmp_path / "study" / "hits.toml").language == "es"


def test_existing_content_is_not_overwritten(tmp_path):
    (tmp_path / "empty").mkdir()
    assert init(tmp_path / "empty").exit_code == 0
    (tmp_path / "empty" / "dialogues.csv").write_text("mine")
    result = init(tmp_path / "empty")
    assert result.exit_code == 2
    assert "exists and is not overwritten; expected the name of a new" in result.stderr
    assert (tmp_path / "empty" / "dialogues.csv").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    assert init(tmp_path / "file").exit_code == 2


def test_a_folder_is_complete_or_absent(tmp_path):
    with pytest.raises(TypeError):
        write_new_folder(tmp_path / "study", {"a": b"a", "b": object()})
    assert [*tmp_path.iterdir()] == []


def test_an_unknown_language_gets_a_suggestion(tmp_path):
    message = init(tmp_path / "s", "--language", "dee").stderr
    assert "'de', 'en', 'es'" in message
    assert "did you mean 'de'?" in message
