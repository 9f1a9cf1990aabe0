"""Candidates: the writers' sheet out and in again, their order, and what they are checked for."""

import csv
import io
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bws.base.problems import InputError
from giccs.benchmark.candidates import candidate_problems, comparable_text
from giccs.benchmark.items import Candidate, Dialogue, Turn
from giccs.preparation.sheet import add_candidates, default_sheet_texts, make_sheet, read_sheet

TURNS = (
    Turn("user", "Wann läuft „Der Blaue Vogel“?"),
    Turn("system", "Um acht,\nim Gloria; Saal 2."),
)


def dialogues(number=3):
    return [Dialogue(f"d{n}", "", "", TURNS, ()) for n in range(number)]


def filled(tmp_path, dialogues, text, delimiter=",", language="de", mark=""):
    """The sheet as it comes back: `text(dialogue_id, level)` is what the writer wrote."""
    rows = list(
        csv.DictReader(
            io.StringIO(make_sheet(dialogues, default_sheet_texts(language)), newline="")
        )
    )
    for row in rows:
        row["text"] = text(row["dialogue_id"], int(row["level"]))
    written = io.StringIO()
    writer = csv.DictWriter(written, rows[0], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    path = tmp_path / "writers.csv"
    path.write_bytes((mark + written.getvalue()).encode("utf-8"))
    return path


def back(path, dialogues, number=5, seed=0):
    return add_candidates(dialogues, *read_sheet(path), number, seed)


def test_the_sheet_asks_for_five_levels_in_words():
    rows = list(
        csv.DictReader(io.StringIO(make_sheet(dialogues(2), default_sheet_texts("de")), newline=""))
    )
    assert [row["level"] for row in rows] == ["5", "4", "3", "2", "1"] * 2
    assert [row["criterion"] for row in rows[:5]] == list(
        default_sheet_texts("de").criteria.values()
    )
    assert {row["text"] for row in rows} == {""}
    assert rows[0]["dialogue"] == (
        "Nutzer: Wann läuft „Der Blaue Vogel“?\nSystem: Um acht,\nim Gloria; Saal 2."
    )
    assert rows[0]["last_turn"] == "Um acht,\nim Gloria; Saal 2."


@pytest.mark.parametrize(("delimiter", "mark"), [(",", ""), (";", "\ufeff"), ("\t", "")])
def test_a_filled_sheet_comes_back_from_any_spreadsheet(tmp_path, delimiter, mark):
    given = dialogues()
    path = filled(
        tmp_path, given, lambda d, level: f" {d}: Nr. {level}, „so“ ", delimiter, mark=mark
    )
    result, warnings = back(path, given)
    assert warnings == []
    for dialogue in result:
        assert dialogue.turns == TURNS
        assert {(c.text, c.intended) for c in dialogue.candidates} == {
            (f"{dialogue.dialogue_id}: Nr. {level}, „so“", level) for level in range(1, 6)
        }
        assert [c.utterance_id for c in dialogue.candidates] == [
            f"{dialogue.dialogue_id}-{letter}" for letter in "abcde"
        ]


def test_place_and_name_do_not_tell_the_level(tmp_path):
    """200 dialogues: each of 5 levels at each of 5 places about 40 times (sd √(200·0.2·0.8) = 5.7)."""
    given = dialogues(200)
    result, _ = back(filled(tmp_path, given, lambda d, level: f"{level}"), given)
    levels = np.array([[c.intended for c in one.candidates] for one in result])
    for place in levels.T:
        assert all(20 <= number <= 60 for number in Counter(place.tolist()).values())
    again, _ = back(tmp_path / "writers.csv", given)
    other, _ = back(tmp_path / "writers.csv", given, seed=1)
    assert again == result != other


def test_every_fault_of_a_sheet_is_told_with_its_line(tmp_path):
    path = tmp_path / "w.csv"
    last = '"UM  ACHT, im Gloria; Saal 2. "'
    path.write_text(
        f"level,dialogue_id,text\n5,d0,{last}\n4,d0,a\n3,d0,\n7,d0,A \n1,d9,x\n5,d1,a\n", "utf-8"
    )
    with pytest.raises(InputError) as caught:
        back(path, dialogues(3))
    assert [str(problem).removeprefix(f"{path}") for problem in caught.value.problems] == [
        ":2: the text is identical to the last turn; expected another text",
        ":4: the text of level 3 is missing",
        ":5: level is '7'; expected an integer from 1 to 5",
        ":5: the text repeats the text of line 3",
        ":5: dialogue d0 has 4 rows; expected 5",
        ":6: unknown dialogue 'd9'",
        ":7: dialogue d1 has 1 rows; expected 5",
        ": dialogue d2 has 0 rows; expected 5",
    ]


def test_a_level_that_nobody_wrote_is_said(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("dialogue_id,level,text\nd0,5,a\nd0,5,b\n", "utf-8")
    result, (warning,) = back(path, dialogues(1), number=2)
    assert len(result[0].candidates) == 2
    assert str(warning) == f"{path}:2: dialogue d0 has no candidate of level 4, 3, 2, 1"


def test_a_sheet_of_another_shape(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("dialogue_id,words\nd0,a\n", "utf-8")
    with pytest.raises(
        InputError, match=r"w\.csv:1: no column level, text; existing columns are dialogue_id"
    ):
        read_sheet(path)


def test_dialogues_that_have_candidates_keep_them(tmp_path):
    given = dialogues(1)
    result, _ = back(filled(tmp_path, given, lambda d, level: f"{level}"), given)
    with pytest.raises(InputError, match="dialogue d0 already has candidates"):
        back(tmp_path / "writers.csv", result)


# a sheet's cells are trimmed, and candidates that differ in case or white space only are refused
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=["Cs"]), min_size=1
).map(str.strip).filter(
    lambda text: comparable_text(text) not in ("", comparable_text(TURNS[-1].text))
)  # fmt: skip


@given(st.lists(TEXTS, min_size=5, max_size=5, unique_by=comparable_text), st.integers(0, 2**32))
def test_every_text_comes_back_whatever_it_holds(tmp_path_factory, texts, seed):
    folder = tmp_path_factory.mktemp("sheet")
    given = dialogues(1)
    path = filled(folder, given, lambda d, level: texts[level - 1])
    (result,), _ = back(path, given, seed=seed)
    assert {c.intended: c.text for c in result.candidates} == dict(enumerate(texts, start=1))


def test_what_is_unlike_a_set():
    candidates = (
        Candidate("a", "Um neun.", 5), Candidate("b", "um  NEUN.", 4),
        Candidate("c", "Um acht, im Gloria; Saal 2.", 3),
    )  # fmt: skip
    assert list(candidate_problems(Dialogue("d", "", "", TURNS, candidates), 5)) == [
        "has 3 candidates instead of 5",
        "candidate b repeats candidate a",
        "candidate c repeats the last turn",
        "has no candidate of level 2, 1",
    ]
    plain_ones = tuple(Candidate(str(n), f"Satz {n}") for n in range(5))
    assert list(candidate_problems(Dialogue("d", "", "", TURNS, plain_ones), 5)) == []
