"""giccs-report --people: people's scores of a part of a benchmark that a judge scored."""

import json

import numpy as np
import polars
import pytest
from click.testing import CliRunner

from bws.problems import InputError
from bws.records import Scores
from giccs.cli.reporting import report
from giccs.measures.metrics import correlations
from giccs.measures.results import Result, Store
from giccs.report.people_correlations import correlate_with_people

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
        correlate_with_people([result()], scores(rows, groups)).document()
        for groups in (True, False)
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
    notes = correlate_with_people([result()], people).notes
    assert "1 of 39 scores by people are of no item of the results" in notes
    assert "1 dialogues excluded: people scored only some of their items" in notes


def test_scores_of_other_items_are_refused():
    people = scores(np.arange(8))
    people.groups[:] = "other"
    with pytest.raises(InputError, match="no score of an item of judged"):
        correlate_with_people([result()], people)


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


def test_command_refuses_other_comparisons(files):
    done = CliRunner().invoke(report, [files[0], "--people", files[1], "--compare"])
    assert done.exit_code == 2
    assert "--people cannot be combined" in done.output
