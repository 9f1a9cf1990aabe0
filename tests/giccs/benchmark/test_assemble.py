"""The dialogues file, and dialogues joined with scores."""

import json

import pytest

from bws.base.problems import InputError
from giccs.benchmark.assemble import (
    assemble,
    dialogue_warnings,
    read_dialogues,
    read_located_dialogues,
    write_dialogues,
)
from giccs.benchmark.items import Candidate, Dialogue, Turn

from ..conftest import write

TURNS = [{"speaker": "user", "text": "Wann?"}, {"speaker": "system", "text": "Um neun."}]


def row(**values):
    return {"dialogue_id": "d", "source": "s", "domain": "tv", "turns": TURNS} | values


def candidates(*texts):
    return [{"utterance_id": f"u{n}", "text": text} for n, text in enumerate(texts)]


def test_what_is_written_is_read_back(tmp_path):
    turns = (Turn("user", "Wann?"), Turn("", "Um\u2028neun."))
    given = [
        Dialogue(
            "a", "s", "find_tv", turns, (Candidate("x", "Ja.", 5), Candidate("y", "N.")), "tv"
        ),
        Dialogue("b", "", "", turns, ()),
    ]
    path = tmp_path / "d.jsonl"
    write_dialogues(given, path)
    assert read_dialogues(path, candidates=False) == given
    first, second = map(json.loads, path.read_text("utf-8").split("\n")[:2])
    assert "original_domain" in first
    assert "original_domain" not in second
    assert "intended" not in first["candidates"][1]


@pytest.mark.parametrize("given", [{}, {"candidates": []}, {"candidates": None}])
def test_candidates_may_come_later_but_not_never(tmp_path, given):
    path = write(tmp_path / "d.jsonl", [row(**given)])
    assert read_dialogues(path, candidates=False)[0].candidates == ()
    with pytest.raises(InputError) as caught:
        read_dialogues(path)
    assert str(caught.value) == f"{path}:1: no candidates; add them with giccs build candidates"


def test_wrong_candidates_are_told_in_any_case(tmp_path):
    lines = [
        row(candidates="x"),
        row(dialogue_id="e", candidates=candidates("a", "a"), original_domain=3),
    ]
    path = write(tmp_path / "d.jsonl", lines)
    with pytest.raises(InputError) as caught:
        read_dialogues(path, candidates=False)
    assert str(caught.value).split("\n") == [
        f"{path}:1: candidates is 'x'; expected a list of objects",
        f"{path}:2: repeats the candidate text 'a' of the same line; each must be unique",
        f"{path}:2: original_domain is 3; it must be a string",
    ]


def test_the_original_label_goes_into_the_items(tmp_path):
    path = write(tmp_path / "d.jsonl", [row(candidates=candidates("a"), original_domain="phone")])
    (item,) = assemble(read_dialogues(path), {("d", "u0"): 0.5})
    assert (item.domain, item.original_domain) == ("tv", "phone")


def test_what_is_odd_is_said_with_its_place(tmp_path):
    five = candidates("a", "b", "c", "d", "e")
    lines = [
        row(candidates=five),
        row(dialogue_id="two", candidates=candidates("a", "A")),
        row(dialogue_id="levels", candidates=[one | {"intended": 5} for one in five]),
    ]
    path = write(tmp_path / "d.jsonl", lines)
    placed = read_located_dialogues(path)
    scores = {(one.record.dialogue_id, c.utterance_id): n / 4 for one in placed
              for n, c in enumerate(one.record.candidates)}  # fmt: skip
    items = assemble([one.record for one in placed], scores)
    result = [
        str(problem).removeprefix(f"{path}:")
        for problem, _ in dialogue_warnings(placed, items, "user", 5)
    ]
    assert result == [
        "1: dialogue d: ends with a turn by system instead of user",
        "2: dialogue two: has 2 candidates instead of 5",
        "2: dialogue two: candidate u1 repeats candidate u0",
        "2: dialogue two: ends with a turn by system instead of user",
        "2: dialogue two: has scores with a range of only 0.25; candidates should differ more",
        "2: dialogue 'two' has the turns of dialogue 'd' in line 1, and 1 of its candidates; analyses count "
        "both as independent",
        "3: dialogue levels: has no candidate of level 4, 3, 2, 1",
        "3: dialogue levels: ends with a turn by system instead of user",
        "3: dialogue 'levels' has the turns of dialogue 'd' in line 1, and 5 of its candidates; analyses "
        "count both as independent",
    ]
    assert [name for _, name in dialogue_warnings(placed[:1], items, "system", 5)] == []
