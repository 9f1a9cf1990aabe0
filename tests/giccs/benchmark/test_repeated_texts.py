"""Dialogues, utterances, judgments and results that count several times."""

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

import bws
import giccs
from bws.base.problems import InputError
from bws.cli import make_tuples
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.assemble import read_dialogues, write_dialogues
from giccs.cli.building import build
from giccs.cli.card import card
from giccs.cli.evaluation import evaluate
from giccs.cli.preparing import select
from giccs.cli.reporting import compare_models, report
from giccs.cli.validation import validate

SAMPLE = read_benchmark("giccs-sample")
DATA = Path(str(files("giccs.data")))


def run(command, *arguments, code=0):
    result = CliRunner().invoke(command, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def spaced(turns):
    """The turns with white space that does not count."""
    return tuple(replace(turn, text=f" {turn.text.replace(' ', '  ')}") for turn in turns)


def doubled(items):
    """The items, and those of the same dialogues under other ids."""
    copies = [
        replace(
            item,
            item_id=f"copy-{item.item_id}",
            dialogue_id=f"copy-{item.dialogue_id}",
            turns=spaced(item.turns),
        )
        for item in items
    ]
    return [*items, *copies]


@pytest.fixture
def benchmark(tmp_path):
    """The first six dialogues of the sample twice, with other ids and white space."""
    path = tmp_path / "benchmark.jsonl"
    write_benchmark(doubled(SAMPLE.first(6).items), path)
    return path


def expected_warnings(path):
    """A warning per copied dialogue, from the lines of the file."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    first = {}
    for line, row in enumerate(rows, start=1):
        first.setdefault(row["dialogue_id"], line)
    return [
        f"{path}:{line}: dialogue {name!r} has the turns of dialogue {name[5:]!r} in line {first[name[5:]]}, "
        "and 5 of its candidates; analyses count both as independent"
        for name, line in first.items()
        if name.startswith("copy-")
    ]


def test_validate_reports_repeated_dialogues(benchmark):
    expected = expected_warnings(benchmark)
    assert len(expected) == 6
    assert json.loads(run(validate, benchmark, "--json").stdout)["warnings"] == expected
    assert [*map(str, read_benchmark(benchmark).warnings)] == expected
    assert SAMPLE.warnings == ()


def test_eval_reports_repeated_dialogues_and_records_them(benchmark, tmp_path):
    result = run(
        evaluate, "baseline:char-ngram", "--data", benchmark, "-o", tmp_path / "r", "--json"
    )
    first = expected_warnings(benchmark)[0]
    assert result.stderr.count(f"warning: {first} (6 lines like this") == 1
    documents = json.loads(result.stdout)["results"]
    assert {document["environment"]["repeated_dialogues"] for document in documents} == {"6"}
    assert "repeated_dialogues" not in SAMPLE.provenance()


def test_utterances_that_differ_in_white_space(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    first, second, *others = SAMPLE.first(1).items
    second = replace(
        second, utterance=f"{first.utterance.replace(' ', '  ')} ", score=first.score + 0.1
    )
    write_benchmark([first, second, *others], path)
    (warning,) = read_benchmark(path).warnings
    assert str(warning) == (
        f"{path}:2: utterance {second.utterance_id!r} differs from {first.utterance_id!r} in line 1 only in "
        "white space or Unicode form, with another score"
    )


@pytest.fixture
def dialogues(tmp_path):
    """Two dialogues of the sample, and the first again under another id."""
    first, second, *_ = read_dialogues(DATA / "dialogues.jsonl")
    path = tmp_path / "dialogues.jsonl"
    copy = replace(
        first, dialogue_id="copy", turns=spaced(first.turns), candidates=first.candidates[:4]
    )
    write_dialogues([first, second, copy], path)
    return path


def expected_warning(path):
    first = read_dialogues(path)[0]
    return (
        f"{path}:3: dialogue 'copy' has the turns of dialogue {first.dialogue_id!r} in line 1, and 4 of its "
        "candidates; analyses count both as independent"
    )


def test_select_reports_repeated_dialogues(tmp_path):
    path = tmp_path / "without.jsonl"
    originals = [replace(each, candidates=()) for each in read_dialogues(DATA / "dialogues.jsonl")]
    copy = replace(originals[0], dialogue_id="copy", turns=spaced(originals[0].turns))
    write_dialogues([*originals, copy], path)
    assert (
        f"warning: {path}:{len(originals) + 1}: dialogue 'copy' has the turns of dialogue "
        f"{originals[0].dialogue_id!r} in line 1; analyses count both as independent\n"
    ) in run(select, path, "-o", tmp_path / "s.jsonl").stderr


def test_build_and_designs_report_repeated_dialogues(dialogues, tmp_path):
    scores = [
        f"{candidate.utterance_id},{dialogue.dialogue_id},{number / 4}"
        for dialogue in read_dialogues(dialogues)
        for number, candidate in enumerate(dialogue.candidates)
    ]
    (tmp_path / "scores.csv").write_text("\n".join(["item,group,score", *scores]))
    paths = (
        "--dialogues",
        dialogues,
        "--scores",
        tmp_path / "scores.csv",
        "-o",
        tmp_path / "b.jsonl",
    )
    log = tmp_path / "log.jsonl"
    results = [
        run(build, *paths, "--log", log),
        run(make_tuples, dialogues, "-k", 3, "-o", tmp_path / "t.csv"),
    ]
    for result in results:
        assert result.stderr.count(f"warning: {expected_warning(dialogues)}\n") == 1
    assert expected_warning(dialogues) in [
        decision.get("place") for decision in map(json.loads, log.read_text().splitlines())
    ]


def test_a_study_notes_repeated_dialogues(dialogues, tmp_path):
    from mturk.kinds import get_kind
    from mturk.study.settings_file import read_settings_file

    run(make_tuples, dialogues, "-k", 3, "-o", tmp_path / "t.csv")
    planned = get_kind("tuples").plan(
        str(tmp_path / "t.csv"), str(dialogues), read_settings_file(DATA / "hits.toml"), "de"
    )
    assert expected_warning(dialogues) in planned.notes


@pytest.fixture
def judgments(tmp_path):
    """The sample's judgments twice, the second time under other tuple ids."""
    header, *rows = (DATA / "judgments.csv").read_text().splitlines()
    path = tmp_path / "judgments.csv"
    path.write_text("\n".join([header, *rows, *(f"copy-{row}" for row in rows)]))
    return path


def test_the_noise_ceiling_refuses_copied_judgments(judgments, tmp_path, monkeypatch):
    def refused(lang):
        raise ValueError(lang)

    monkeypatch.setattr("giccs.description.lemmas.lemmatiser", refused)  # the card without lemmas
    line = f"{judgments}:3002: 3000 of 6000 judgments repeat annotator, items, best and worst"
    with pytest.raises(InputError, match="--allow-copies"):
        giccs.noise_ceiling(SAMPLE, judgments)
    calls = [
        (evaluate, "baseline:chance", "-o", tmp_path / "results", "--judgments", judgments),
        (report, tmp_path / "results", "--judgments", judgments),
        (card, "giccs-sample", "--judgments", judgments, "-o", tmp_path / "card"),
    ]
    run(evaluate, "baseline:chance", "-o", tmp_path / "results")
    for command, *arguments in calls:
        assert line in run(command, *arguments, code=2).stderr
        allowed = run(command, *arguments, "--allow-copies")
        assert allowed.stderr.count(f"warning: {line}") == 1
    # A stored ceiling does not bypass the check.
    command, *arguments = calls[0]
    assert line in run(command, *arguments, code=2).stderr


def test_the_noise_ceiling_rises_with_copied_annotators(judgments):
    header, *rows = judgments.read_text().splitlines()
    half = len(rows) // 2
    name = bws.read_judgments(DATA / "judgments.csv").annotators[0].rpartition("-")[0]
    renamed = [row.replace(f",{name}-", ",other-") for row in rows[half:]]
    judgments.write_text("\n".join([header, *rows[:half], *renamed]))
    with pytest.raises(InputError, match="3000 of 6000 judgments repeat items, best and worst"):
        giccs.noise_ceiling(SAMPLE, judgments)
    allowed = giccs.noise_ceiling(SAMPLE, bws.read_judgments(judgments, allow_copies=True))
    assert allowed["pearson"].value > giccs.noise_ceiling(SAMPLE)["pearson"].value + 0.001


def test_compare_reports_one_model_under_two_names(tmp_path):
    def lengths(left, right):
        return [float(len(text)) for text in right]

    for name in ("one", "other"):
        giccs.evaluate(lambda left, right: lengths(left, right), SAMPLE, name=name, folder=tmp_path)
    giccs.evaluate("baseline:char-ngram", SAMPLE, task="pairwise-sts", folder=tmp_path)
    (warning,) = [
        line for line in run(compare_models, tmp_path).stderr.splitlines() if "warning" in line
    ]
    assert warning == (
        "warning: giccs-sample: other and one have the same predictions (pairwise-sts); ranks and the "
        "correction for the number of comparisons count them as two models"
    )
