"""giccs report --people: people's scores of a part of a benchmark that a judge scored."""

import json
import math
from dataclasses import replace

import numpy as np
import polars
import pytest
from click.testing import CliRunner

import giccs
from bws.base.problems import InputError
from bws.records import Scores
from bws.stats.estimates import Estimate
from giccs.cli.reporting import report
from giccs.measures.metrics import correlations
from giccs.measures.results import Group, Result, Store
from giccs.report.people_comparison import compare_with_people

RNG = np.random.default_rng(1)
DIALOGUE = np.repeat(np.arange(30), 4)
QUALITY = RNG.normal(size=len(DIALOGUE))
JUDGE, PREDICTION, PEOPLE = (QUALITY + RNG.normal(size=len(QUALITY)) for _ in range(3))
ITEMS = [f"{d}/{n % 4}" for n, d in enumerate(DIALOGUE)]


def result(items=ITEMS):
    frame = polars.DataFrame(
        {
            "item_id": items,
            "dialogue_id": DIALOGUE.astype(str),
            "prediction": PREDICTION,
            "score": JUDGE,
            "domain": [f"domain {d % 7}" for d in DIALOGUE],
        }
    )
    return Result(
        "m", "pairwise-sts", correlations(PREDICTION, JUDGE, DIALOGUE, resamples=20), (),
        {"history": "without", "data": "sha", "model": "m"}, {"data": "judged"}, 0.0, frame,
    )  # fmt: skip


def scores(rows, groups=True):
    item = [f"{n % 4}" if groups else ITEMS[n] for n in rows]
    group = [str(DIALOGUE[n]) if groups else "" for n in rows]
    none = np.zeros(len(rows), np.int64)
    names = (np.array(each, dtype=object) for each in (item, group))
    return Scores(*names, PEOPLE[rows], none, none, none)


def test_scores_are_matched_by_dialogue_and_utterance_or_by_item():
    rows = np.flatnonzero(DIALOGUE < 10)
    by_group, by_item = (
        compare_with_people([result()], scores(rows, groups)).document() for groups in (True, False)
    )
    assert by_group == by_item
    metric = by_group["people"][0]["metrics"]["spearman"]
    assert metric["dialogues"] == {"people": 10, "judge_alone": 20}
    expected = correlations(PREDICTION[rows], PEOPLE[rows], DIALOGUE[rows])["spearman"].value
    assert metric["people"]["value"] == pytest.approx(expected)


def test_unknown_items_and_partly_scored_dialogues_are_counted():
    rows = np.flatnonzero(DIALOGUE < 10)[1:]
    people = scores(rows, groups=False)
    people.items[0] = "elsewhere"
    notes = compare_with_people([result()], people).notes
    assert "1 of 39 scores by people are of no item of the results" in notes
    assert "1 dialogues excluded: people scored only some of their items" in notes


def test_dialogues_that_are_no_random_part_are_noted():
    """People scored the dialogues in which the judge's scores are most spread."""
    spread = np.array([JUDGE[d == DIALOGUE].std() for d in range(30)])
    note = "people's dialogues are no random part"
    for dialogues, is_noted in ((np.argsort(-spread)[:10], True), (np.arange(10), False)):
        rows = np.flatnonzero(np.isin(DIALOGUE, dialogues))
        notes = compare_with_people([result()], scores(rows)).notes
        assert (note in " ".join(notes)) == is_noted
        assert notes[-1] == "Intervals and tests generalise to other dialogues of the same domains."


def test_scores_of_other_items_are_refused():
    people = scores(np.arange(8))
    people.groups[:] = "other"
    with pytest.raises(InputError, match="no score of an item of judged"):
        compare_with_people([result()], people)


@pytest.fixture
def files(tmp_path):
    Store(tmp_path / "results").add(result())
    rows = ["item,group,score"]
    rows += [f"{n % 4},{DIALOGUE[n]},{PEOPLE[n]}" for n in np.flatnonzero(DIALOGUE < 10)]
    (tmp_path / "people.csv").write_text("\n".join(rows))
    return [str(tmp_path / name) for name in ("results", "people.csv")]


def test_command_prints_the_table_and_json(files):
    done = CliRunner().invoke(report, [files[0], "--people", files[1]])
    assert done.exit_code == 0, done.output
    assert "needed" in done.stdout
    assert "if people scored a random part of the dialogues" in " ".join(done.stdout.split())
    document = json.loads(
        CliRunner().invoke(report, [files[0], "--people", files[1], "--json"]).stdout
    )
    assert document["people"][0]["metrics"]["pearson"]["lambda"] >= 0


def test_command_prints_intervals_over_domains(files):
    options = [files[0], "--people", files[1]]
    done = CliRunner().invoke(report, [*options, "--cluster", "domain"])
    assert done.exit_code == 0, done.output
    assert "Intervals and tests generalise to other domains." in " ".join(done.stdout.split())
    over_domains, over_dialogues = (
        json.loads(CliRunner().invoke(report, [*options, *more, "--json"]).stdout)["people"][0]
        for more in (["--cluster", "domain"], [])
    )
    for name, metric in over_domains["metrics"].items():
        other = over_dialogues["metrics"][name]
        for each in ("judge", "people", "prediction_powered"):
            assert metric[each]["value"] == pytest.approx(other[each]["value"])
            assert metric[each]["low"] != pytest.approx(other[each]["low"])


def test_command_refuses_other_comparisons(files):
    done = CliRunner().invoke(report, [files[0], "--people", files[1], "--compare"])
    assert done.exit_code == 2
    assert "--people cannot be combined" in done.output


# multiple choice


def likelihoods(prompts, options):
    """A model that prefers long options, the less so the longer the prompt."""
    return [
        [len(text) / (1 + len(prompt)) - 9 for text in of]
        for prompt, of in zip(prompts, options, strict=True)
    ]


@pytest.fixture(scope="module")
def choices():
    """Results of the model on the sample, with and without history, in two orders."""
    return giccs.evaluate(
        likelihoods, "giccs-sample", task="multiple-choice-sts", name="long", history="both", permutations=2
    )[0]  # fmt: skip


def by_people(choices, n_dialogues, seed=0):
    """Random scores with ties of the first dialogues; dialogue -> utterance -> score."""
    rng = np.random.default_rng(seed)
    scored = {}
    for row in choices.predictions.iter_rows(named=True):
        of = scored.setdefault(row["dialogue_id"], {})
        of.setdefault(row["utterance_id"], float(rng.integers(3)))
    return dict(sorted(scored.items())[:n_dialogues])


def as_scores(scored, with_dialogue=False):
    rows = [(d, u, s) for d, of in scored.items() for u, s in of.items()]
    none = np.zeros(len(rows), np.int64)
    item = [f"{d}/{u}" if with_dialogue else u for d, u, _ in rows]
    group = ["" if with_dialogue else d for d, _, _ in rows]
    names = (np.array(each, dtype=object) for each in (item, group))
    return Scores(*names, np.array([s for *_, s in rows]), none, none, none)


def correct_by_hand(choices, history, key):
    """1 if the option with the highest mean likelihood of a dialogue has the highest score, by dialogue."""
    rows = choices.predictions.filter(polars.col("history") == history).to_dicts()
    correct = {}
    for dialogue in key:
        likelihood = dict.fromkeys(key[dialogue], 0.0)
        for row in rows:
            if row["dialogue_id"] == dialogue:
                likelihood[row["utterance_id"]] += row["logprob"]
        chosen = max(likelihood, key=likelihood.get)
        correct[dialogue] = float(key[dialogue][chosen] == max(key[dialogue].values()))
    return correct


@pytest.mark.parametrize("with_dialogue", [False, True])
def test_accuracies_have_the_key_of_people(choices, with_dialogue):
    key = by_people(choices, 25)
    comparison = compare_with_people([choices], as_scores(key, with_dialogue))
    document = comparison.document()
    assert [row["history"] for row in document["people"]] == ["with", "without"]
    for row in document["people"]:
        found = row["metrics"]["accuracy"]
        group = next(g for g in choices.groups if g.by == {"history": row["history"]})
        assert found["judge"]["value"] == pytest.approx(group.metrics["accuracy"].value)
        expected = list(correct_by_hand(choices, row["history"], key).values())
        assert found["people"]["value"] == pytest.approx(np.mean(expected))
        assert found["dialogues"] == {"people": 25, "judge_alone": 35}
    assert 0 < document["people"][0]["metrics"]["accuracy"]["people"]["value"] < 1


def test_a_judge_with_the_key_of_people_gives_the_accuracy_over_all_dialogues(choices):
    key = {}
    for row in choices.predictions.iter_rows(named=True):
        key.setdefault(row["dialogue_id"], {})[row["utterance_id"]] = row["score"]
    people = as_scores(dict(list(key.items())[:24]))
    comparison = compare_with_people([choices], people)
    for row, cells in zip(comparison.rows, comparison.result_table().rows, strict=True):
        each = row.estimates["accuracy"]
        assert each.weight == pytest.approx(1 - 24 / 60, abs=0.1)
        assert each.powered.value == pytest.approx(each.judge.value, abs=0.02)
        assert each.equivalent_dialogues == pytest.approx(60, rel=0.2)
        assert cells[-1] == math.ceil(each.equivalent_dialogues)


def test_dialogues_with_some_scores_are_excluded_from_accuracies(choices):
    key = by_people(choices, 25)
    del key[min(key)][min(key[min(key)])]
    comparison = compare_with_people([choices], as_scores(key))
    each = comparison.rows[0].estimates["accuracy"]
    assert (each.people_dialogues, each.judge_dialogues) == (24, 35)
    assert "1 dialogues excluded: people scored only some of their items" in comparison.notes


def test_generated_answers_count_by_their_share_of_orders(choices):
    """The option with the first letter is chosen in one of two orders, none in the other."""
    generated = choices.predictions.with_columns(
        chosen=(polars.col("letter") == "A") & (polars.col("order") == 0), outcome=polars.lit("answered")
    )  # fmt: skip
    key = by_people(choices, 25)
    result = replace(choices, predictions=generated)
    found = compare_with_people([result], as_scores(key)).rows[0].estimates["accuracy"]
    first = generated.filter(polars.col("chosen") & (polars.col("history") == "with")).to_dicts()
    right = [
        key[row["dialogue_id"]][row["utterance_id"]] == max(key[row["dialogue_id"]].values())
        for row in first
        if row["dialogue_id"] in key
    ]
    assert len(right) == 25
    assert found.people.value == pytest.approx(np.mean(right) / 2)
    assert 0 < found.people.low < found.people.value < found.people.high < 1


def test_likelihoods_of_nan_are_left_out_with_a_note(choices):
    of_history = {
        "accuracy": Estimate(
            math.nan, math.nan, math.nan, 60, "2 questions have a likelihood of NaN"
        )
    }
    undefined = replace(choices, groups=(Group({"history": "with"}, of_history),))
    comparison = compare_with_people([undefined], as_scores(by_people(choices, 20)))
    assert comparison.rows == ()
    assert comparison.notes == ("long: left out, as some likelihoods are NaN",)


def test_command_prints_accuracies(choices, tmp_path):
    Store(tmp_path / "results").add(choices)
    key = by_people(choices, 25)
    lines = [f"{u},{d},{s}" for d, of in key.items() for u, s in of.items()]
    (tmp_path / "people.csv").write_text("\n".join(["item,group,score", *lines]), "utf-8")
    done = CliRunner().invoke(
        report, [str(tmp_path / "results"), "--people", str(tmp_path / "people.csv")]
    )
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines() if " accuracy " in line]
    assert [line[1] for line in lines] == ["with", "without"]
