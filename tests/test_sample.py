"""giccs-sample and giccs-sample-en: made by the commands and in the shape of their cards."""

import csv
import hashlib
import json
import re
import shutil
from collections import Counter, defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from bws.absolute.files import read_anchors
from giccs.benchmark import SAMPLES, known_terms, read_benchmark
from giccs.benchmark.assemble import read_dialogues
from giccs.evaluation.task_results import evaluate_task
from giccs.models import open_model
from giccs.progress import silent
from giccs.tasks.pairwise import PairwiseSTS
from mturk.service.site.studies import read_studies
from mturk.study.settings_file import read_settings

ROOT = Path(__file__).parents[1]
MADE = ("tuples.csv", "anchor-plan.csv", "judgments.csv", "anchors.csv")
WITH_ABSOLUTE_SCORES = ("scores.csv", "benchmark.jsonl")
FOLDERS = {name: ROOT / "giccs" / "data" / folder for name, folder in SAMPLES.items()}
DIALOGUES = {name: read_dialogues(path / "dialogues.jsonl") for name, path in FOLDERS.items()}
of_both = pytest.mark.parametrize("name", SAMPLES)


def commands_of(text):
    """The commands of a text, one a line, lines that go on joined."""
    joined = text.replace("\\\n", " ")
    return [
        line.split() for line in map(str.strip, joined.splitlines()) if line.startswith("giccs ")
    ]


def card(name):
    return (FOLDERS[name] / "README.md").read_text("utf-8")


def rows_of(name):
    """The last turn, the candidate and its level, for each of the 300 candidates."""
    rows = [(d.turns[-1].text, c.text, c.intended) for d in DIALOGUES[name] for c in d.candidates]
    targets, texts, levels = zip(*rows, strict=True)
    return targets, texts, np.array(levels)


@of_both
def test_the_recorded_commands_make_every_file_again(name, tmp_path, commands):
    shutil.copy(FOLDERS[name] / "dialogues.jsonl", tmp_path)
    recorded = commands_of(card(name))
    assert len(recorded) == 4
    for command in recorded:
        done = commands.run(*command, cwd=tmp_path)
        assert done.returncode == 0, (command, done.stderr)
    for file in MADE:
        assert (tmp_path / file).read_bytes() == (FOLDERS[name] / file).read_bytes(), file
    for file in WITH_ABSOLUTE_SCORES:
        (text, absolute), (expected_text, expected) = (
            split_absolute(folder / file) for folder in (tmp_path, FOLDERS[name])
        )
        assert text == expected_text, file
        assert absolute == pytest.approx(expected, abs=1.1e-4), file


def split_absolute(path):
    """Return the rows of a file without absolute scores, and the latter.

    Draws of a posterior differ between CPUs by about 1e-11, which may change the fourth decimal, the last.
    """
    with open(path, encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)] if path.suffix == ".csv" else [*map(json.loads, file)]
    names = [name for name in rows[0] if name.startswith("absolute_")]
    absolute = [float(row.pop(name)) for row in rows for name in names]
    assert len(absolute) == 300 * (3 if path.suffix == ".csv" else 1)
    return rows, absolute


@of_both
def test_make_sample_is_what_the_card_says(name):
    makefile = (
        (ROOT / "Makefile").read_text("utf-8").replace("$(BIN)/", "").replace("$(SAMPLE)/", "")
    )
    recipe = makefile.partition("\nsample-files:")[2].partition("\n\n")[0]
    assert commands_of(recipe) == commands_of(card(name))
    assert f"SAMPLE={FOLDERS[name].relative_to(ROOT).as_posix()}\n" in makefile


@of_both
def test_dialogues_have_the_shape_of_the_paper(name):
    dialogues = DIALOGUES[name]
    sizes = Counter((d.source, d.domain, len(d.turns)) for d in dialogues)
    assert sizes["written", "find_restaurant", 3] == sizes["written", "find_restaurant", 5] == 12
    spoken = Counter()
    for (source, domain, n_turns), number in sizes.items():
        if source == "spoken":
            assert sizes[source, domain, 8 - n_turns] == number  # half three turns, half five
            spoken[domain] += number
    assert spoken == {
        "find_cinema": 8, "find_hotel": 6, "find_navigation": 6, "find_touristAttraction": 8,
        "find_tvProgram": 8,
    }  # fmt: skip
    for dialogue in dialogues:
        assert sorted(c.intended for c in dialogue.candidates) == [1, 2, 3, 4, 5]
        speakers = [turn.speaker for turn in dialogue.turns]
        assert set(pairwise(speakers)) == {
            ("user", "system"),
            ("system", "user"),
        }
    texts = [candidate.text for d in dialogues for candidate in d.candidates]
    assert len(set(texts)) == 300


def test_the_languages_differ_in_texts_and_ids_but_not_in_shape():
    german, english = DIALOGUES.values()
    assert [{d.language for d in dialogues} for dialogues in (german, english)] == [{"de"}, {"en"}]
    assert {d.dialogue_id for d in german}.isdisjoint(d.dialogue_id for d in english)
    shapes = [
        Counter((d.domain, len(d.turns), d.turns[-1].speaker) for d in dialogues)
        for dialogues in (german, english)
    ]
    assert shapes[0] == shapes[1]
    words = [
        np.mean([len(turn.text.split()) for d in dialogues for turn in d.turns])
        for dialogues in (german, english)
    ]
    assert words[1] == pytest.approx(words[0], rel=0.1)


@of_both
def test_place_in_the_list_does_not_give_the_level_away(name):
    levels = np.array([[c.intended for c in d.candidates] for d in DIALOGUES[name]])
    for place in levels.T:
        assert all(8 <= count <= 16 for count in Counter(place.tolist()).values())  # 12 expected


@of_both
def test_length_and_punctuation_do_not_give_the_level_away(name):
    targets, texts, levels = rows_of(name)
    characters = np.array([len(text) for text in texts])
    means = [characters[levels == level].mean() for level in range(1, 6)]
    assert max(means) < 1.1 * min(means)
    assert abs(spearmanr(characters, levels).statistic) < 0.15
    difference = np.abs(characters - [len(text) for text in targets])
    assert abs(spearmanr(difference, levels).statistic) < 0.2
    is_question = np.array([text.endswith("?") for text in texts])
    assert abs(spearmanr(is_question, levels).statistic) < 0.1


@of_both
def test_scores_are_what_the_design_implies(name):
    """Five annotators, six tuples an item: scores are k/60; a dialogue's five sum to 2.5."""
    items = read_benchmark(name).items
    total = defaultdict(float)
    for item in items:
        assert item.score * 60 == pytest.approx(round(item.score * 60), abs=1e-9)
        total[item.dialogue_id] += item.score
    assert len(total) == 60
    assert list(total.values()) == pytest.approx([2.5] * 60)


@of_both
def test_judgments_say_that_they_are_simulated(name):
    with open(FOLDERS[name] / "judgments.csv", encoding="utf-8", newline="") as file:
        annotators = Counter(row["annotator"] for row in csv.DictReader(file))
    assert annotators == {f"simulated-{number}": 600 for number in range(1, 6)}
    copied = read_benchmark(FOLDERS[name] / "benchmark.jsonl")
    assert known_terms(copied) == read_benchmark(name).terms
    assert known_terms(copied).annotators == "simulated"
    assert "**simulated annotators**" in card(name)
    assert "license: cc-by-4.0" in card(name)
    assert f"\npretty_name: {name}\n" in card(name)


@of_both
def test_anchors_give_one_scale_with_moderate_differences_of_dialogues(name):
    """With the ratings, the published scores reach the ipsative limit only."""
    anchors = read_anchors(FOLDERS[name] / "anchors.csv")
    assert {row.annotator for row in anchors.rows} == {f"simulated-{n}" for n in range(1, 6)}
    items = read_benchmark(name).items
    means = defaultdict(list)
    for item in items:
        means[item.dialogue_id].append(item.absolute_score)
    assert 0.1 < np.std([np.mean(scores) for scores in means.values()]) < 0.3
    pairs = [(item.score, item.absolute_score) for item in items]
    assert np.corrcoef(np.transpose(pairs))[0, 1] == pytest.approx(0.8, abs=0.03)
    assert "unrelated to the\ntexts: no model can predict them" in card(name)


@of_both
def test_shared_characters_do_not_answer_the_question(name):
    result = evaluate_task(
        PairwiseSTS(resamples=200), open_model("baseline:char-ngram"), read_benchmark(name)
    )
    assert result.metrics["spearman"].high < 0.4
    assert result.metrics["spearman"].value > 0  # and their absence does not either


@of_both
def test_many_paraphrases_share_little_and_many_unrelated_ones_much(name):
    targets, texts, levels = rows_of(name)
    overlap = np.asarray(open_model("baseline:char-ngram").pair_scores(targets, texts, silent))
    median = float(np.median(overlap[levels == 5]))
    assert sum(np.maximum(overlap[levels == 1], overlap[levels == 2]) > median) >= 20


@of_both
def test_settings_of_the_study_cost_no_more_than_they_allow(name):
    """Real judgments cost what the settings say: 300 pages of tuples and 30 of anchors, five people each, at
    least the minimum wage."""
    settings = read_settings(FOLDERS[name] / "hits.toml", DIALOGUES[name][0].language)
    assert settings.consent
    assert settings.assignments == 5
    assert settings.hourly_wage() >= settings.minimum_wage
    panel, second = read_studies(str(FOLDERS[name] / "studies.toml"))
    n_pages, n_anchor_pages = (n // settings.dialogues_per_hit for n in (600, 60))
    assert panel.hits * panel.participants >= n_pages * settings.assignments
    assert second.hits * second.participants >= n_anchor_pages * settings.assignments
    n_paid = (n_pages + n_anchor_pages) * settings.assignments
    assert settings.spending_limit >= Decimal("1.2") * n_paid * settings.reward
    language = DIALOGUES[name][0].language
    reward = str(settings.reward).replace(".", "," if language == "de" else ".")
    assert all(reward in part.information[language] for part in (panel, second))
    assert [question.accept for question in panel.questions if question.accept] == [
        ["de", "gsw"] if name == "giccs-sample" else ["en"]
    ]


@of_both
def test_who_runs_the_study_is_left_open_and_no_person_is_said_to_have_judged(name):
    for file in ("hits.toml", "studies.toml"):
        text = (FOLDERS[name] / file).read_text("utf-8")
        assert "[NAME]" in text
        assert re.search("No such judgments exist yet|Nobody has taken part yet", text)
    assert "no human annotators" in card(name)
    plan = (ROOT / "docs" / "studies" / "analysis-plan.md").read_text("utf-8")
    assert "**State: not registered, no data.**" in plan
    for file in ("dialogues.jsonl", "tuples.csv", "anchor-plan.csv"):
        digest = hashlib.sha256((FOLDERS[name] / file).read_bytes()).hexdigest()
        assert f"{digest}  {name}/{file}\n" in plan


@of_both
def test_every_line_is_plain_json(name):
    for line in (FOLDERS[name] / "benchmark.jsonl").read_text("utf-8").splitlines():
        assert set(json.loads(line)) >= {"item_id", "turns", "utterance", "score"}
