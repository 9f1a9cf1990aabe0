"""The published release: files written in exactly its shape, and the invariants of its design."""

import csv
import random
from itertools import combinations

import pytest

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.benchmark.release import is_release

DOMAINS = ["restaurant", "cinema", "fax", "navigation", "phone", "tourist", "tv"]


def scores_of(draw):
    """Five scores as they come out of ten 3-tuples with five answers each: k/60, sum 2.5."""
    signed = [0] * 5
    for members in combinations(range(5), 3):
        for _ in range(5):
            best, worst = draw.sample(members, 2)
            signed[best] += 1
            signed[worst] -= 1
    return [(value / 30 + 1) / 2 for value in signed]


def write_release(folder, edit=lambda n_turns, rows: rows, decimals=2):
    for n_turns in (3, 5):
        draw = random.Random(n_turns)
        rows = []
        for d in range(30):
            turns = [f'Dialog {d}, Äußerung {t} mit "Zitat".' for t in range(n_turns)]
            for c, score in enumerate(scores_of(draw)):
                place = [f"{DOMAINS[d % 7]}", "find_something", *turns]
                rows.append([*place, f"Satz {c} zu {d}", f"{score:.{decimals}f}"])
        rows = edit(n_turns, rows)
        stem = f"{n_turns}_turn_dialogues"
        (folder / stem).mkdir(parents=True, exist_ok=True)
        with open(folder / stem / f"GiCCS_dataset_{stem}.tsv", "w", newline="") as file:
            writer = csv.writer(file, delimiter="\t")
            turn_names = [f"turn_{t + 1}" for t in range(n_turns)]
            writer.writerow(["", "original_domain", "suggested_domain", *turn_names,
                             "paired_utterance", "similarity_score"])  # fmt: skip
            writer.writerows([place, *row] for place, row in enumerate(rows))
    return folder


@pytest.mark.parametrize("decimals", [2, 3, 6])
def test_the_release_is_read_whole(tmp_path, decimals):
    benchmark = read_benchmark(write_release(tmp_path, decimals=decimals))
    assert benchmark.warnings == ()
    assert len(benchmark.items) == 300
    assert len(benchmark.dialogue_ids) == 60
    assert {item.n_turns for item in benchmark.items} == {3, 5}
    assert {item.source for item in benchmark.items} == {"CROWDSS", "BAS SmartKom"}
    first = benchmark.items[0]
    assert (first.dialogue_id, first.source, first.domain) == (
        "3-turn-01",
        "CROWDSS",
        "find_something",
    )
    assert [item.original_domain for item in benchmark.items[::5]] == [
        DOMAINS[d % 7] for _ in (3, 5) for d in range(30)
    ]
    assert first.turns[0].text == 'Dialog 0, Äußerung 0 mit "Zitat".'


def edited(row, column, value):
    def edit(n_turns, rows):
        if n_turns == 3:
            rows[row][column] = value
        return rows

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edited(0, -1, "0.51"), "3_turn_dialogues.tsv:2: score 0.51 is not a multiple of 1/60"),
        (edited(0, -1, "1.0"), "scores of dialogue 3-turn-01 sum to"),
        (lambda n, rows: rows[:-1], "dialogue 3-turn-30 has 4 utterances instead of 5"),
        (lambda n, rows: rows[:-5], "contains 29 dialogues instead of 30"),
    ],
)
def test_a_broken_invariant_is_a_warning(tmp_path, edit, message):
    warnings = read_benchmark(write_release(tmp_path, edit)).warnings
    assert any(message in str(warning) for warning in warnings)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edited(4, -1, "high"), ":6: similarity_score is 'high'; it must be from 0 to 1"),
        (edited(4, -1, "nan"), ":6: similarity_score is 'nan'"),
        (edited(4, -2, " "), ":6: empty: paired_utterance"),
        (
            edited(4, -2, "Satz 3 zu 0"),
            ":6: repeats the utterance in its dialogue '3-turn-01', 'Satz 3 zu 0' of",
        ),
    ],
)
def test_a_broken_row_is_an_error_with_its_line(tmp_path, edit, message):
    with pytest.raises(InputError) as caught:
        read_benchmark(write_release(tmp_path, edit))
    assert message in str(caught.value)


def test_a_wrong_column_is_named(tmp_path):
    write_release(tmp_path)
    path = tmp_path / "5_turn_dialogues/GiCCS_dataset_5_turn_dialogues.tsv"
    path.write_text(path.read_text("utf-8").replace("turn_4", "turn4", 1), "utf-8")
    with pytest.raises(InputError, match=r"missing columns turn_4; expected original_domain"):
        read_benchmark(tmp_path)


def test_a_folder_with_one_file_is_not_the_release(tmp_path):
    write_release(tmp_path)
    (tmp_path / "5_turn_dialogues/GiCCS_dataset_5_turn_dialogues.tsv").unlink()
    assert not is_release(tmp_path)


@pytest.mark.parametrize(
    ("row", "column", "ends_at"),
    [(3, 3, 7), (3, -2, 6), (10, 4, 151)],
    ids=["to the next row's quotes", "in the utterance", "to the end of the file"],
)
def test_a_stray_quote_that_swallows_rows_is_an_error(tmp_path, row, column, ends_at):
    write_release(tmp_path)
    path = tmp_path / "3_turn_dialogues/GiCCS_dataset_3_turn_dialogues.tsv"
    lines = [line.replace('"', "").split("\t") for line in path.read_text("utf-8").splitlines()]
    lines[row + 1][column] = '"' + lines[row + 1][column]
    if ends_at < len(lines):
        lines[ends_at - 1][-2] += '"'
    path.write_text("".join("\t".join(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(InputError) as caught:
        read_benchmark(tmp_path)
    (problem,) = caught.value.problems
    assert problem.line == row + 2
    assert f"makes one field of lines {row + 2} to {ends_at}, tabs included" in problem.message
