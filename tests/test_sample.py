"""giccs-sample: made by the project's own commands, in the shape that its card describes."""

import csv
import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from giccs.benchmark import read_benchmark
from giccs.benchmark.assemble import read_dialogues
from giccs.evaluation.task_results import evaluate_task
from giccs.models import open_model
from giccs.progress import silent
from giccs.tasks.pairwise import PairwiseSTS

ROOT = Path(__file__).parents[1]
DATA = ROOT / "giccs" / "data"
MADE = ("tuples.csv", "judgments.csv", "scores.csv", "benchmark.jsonl")
DIALOGUES = read_dialogues(DATA / "dialogues.jsonl")


def commands_of(text):
    """The commands of a text, one a line, lines that go on joined."""
    joined = text.replace("\\\n", " ")
    return [
        line.split()
        for line in map(str.strip, joined.splitlines())
        if line.startswith(("bws-", "giccs-"))
    ]


def test_the_recorded_commands_make_every_file_again(tmp_path):
    shutil.copy(DATA / "dialogues.jsonl", tmp_path)
    commands = commands_of((DATA / "README.md").read_text("utf-8"))
    assert len(commands) == 4
    for name, *arguments in commands:
        program = Path(sys.executable).parent / name
        subprocess.run([str(program), *arguments], cwd=tmp_path, check=True, capture_output=True)
    for name in MADE:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name


def test_make_sample_is_what_the_card_says():
    makefile = (
        (ROOT / "Makefile").read_text("utf-8").replace("$(BIN)/", "").replace("giccs/data/", "")
    )
    recipe = makefile.partition("\nsample:")[2].partition("\n\n")[0]
    assert commands_of(recipe) == commands_of((DATA / "README.md").read_text("utf-8"))


def test_dialogues_have_the_shape_of_the_paper():
    sizes = Counter((d.source, d.domain, len(d.turns)) for d in DIALOGUES)
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
    for dialogue in DIALOGUES:
        assert sorted(c.intended for c in dialogue.candidates) == [1, 2, 3, 4, 5]
    texts = [candidate.text for d in DIALOGUES for candidate in d.candidates]
    assert len(set(texts)) == 300


def test_place_in_the_list_does_not_give_the_level_away():
    levels = np.array([[c.intended for c in d.candidates] for d in DIALOGUES])
    for place in levels.T:
        assert all(8 <= count <= 16 for count in Counter(place.tolist()).values())  # 12 expected


def test_scores_are_what_the_design_implies():
    """Five annotators, six tuples an item: scores are k/60; a dialogue's five sum to 2.5."""
    items = read_benchmark("giccs-sample").items
    total = defaultdict(float)
    for item in items:
        assert item.score * 60 == pytest.approx(round(item.score * 60), abs=1e-9)
        total[item.dialogue_id] += item.score
    assert len(total) == 60
    assert list(total.values()) == pytest.approx([2.5] * 60)


def test_judgments_say_that_they_are_simulated():
    with open(DATA / "judgments.csv", encoding="utf-8", newline="") as file:
        annotators = Counter(row["annotator"] for row in csv.DictReader(file))
    assert annotators == {f"simulated-{number}": 600 for number in range(1, 6)}
    card = (DATA / "README.md").read_text("utf-8")
    assert "simulated annotators" in card
    assert "license: cc-by-4.0" in card


def test_shared_characters_do_not_answer_the_question():
    sample = read_benchmark("giccs-sample")
    result = evaluate_task(PairwiseSTS(resamples=200), open_model("baseline:char-ngram"), sample)
    assert result.metrics["spearman"].high < 0.4


def test_many_paraphrases_share_little_and_many_unrelated_ones_much():
    overlap = open_model("baseline:char-ngram")
    of_level = {}
    for level in (1, 2, 5):
        pairs = [
            (d.turns[-1].text, c.text)
            for d in DIALOGUES
            for c in d.candidates
            if c.intended == level
        ]
        of_level[level] = overlap.pair_scores(*zip(*pairs, strict=True), silent)
    median = float(np.median(of_level[5]))
    assert sum(np.maximum(of_level[1], of_level[2]) > median) >= 20


def test_every_line_is_plain_json():
    for line in (DATA / "benchmark.jsonl").read_text("utf-8").splitlines():
        assert set(json.loads(line)) >= {"item_id", "turns", "utterance", "score"}
