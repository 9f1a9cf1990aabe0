"""An expert's sheet tells no score, and what comes back is compared as in section 4.3 of the paper."""

import csv
import io
import math
from collections import Counter
from itertools import pairwise

import pytest
from scipy.stats import binom, spearmanr

from bws.base.problems import InputError
from giccs.benchmark import Benchmark, read_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.preparation.expert import (
    agreement_share,
    compare_with_expert,
    item_code,
    make_expert_sheet,
    read_expert,
    score_side,
)

SAMPLE = read_benchmark("giccs-sample")


def item(
    number, score, dialogue="d", last="Die Innenstadt.", utterance="Auf dem Land.", source="s"
):
    turns = (Turn("user", "Guten Tag."), Turn("", last))
    return Item(f"i{number}", dialogue, source, "", turns, f"i{number}", utterance, score)


def three():
    return Benchmark("b.jsonl", (item(1, 0.9), item(2, 0.5), item(3, 0.1)))


def rows_of(sheet):
    return list(csv.DictReader(io.StringIO(sheet)))


def write(folder, text):
    path = folder / "expert.csv"
    path.write_text(text, "utf-8")
    return path


def test_the_sheet_has_every_item_once_with_all_that_is_needed_to_judge():
    rows = rows_of(make_expert_sheet(SAMPLE))
    by_code = {row["code"]: row for row in rows}
    assert len(rows) == len(by_code) == 300
    for item in SAMPLE.items:
        row = by_code[item_code(item)]
        assert row["last_turn"] == item.last_turn
        assert row["utterance"] == item.utterance
        assert row["judgment"] == ""
        assert row["dialogue"].split("\n") == [f"{t.speaker}: {t.text}" for t in item.turns]


def test_turns_without_a_speaker_are_numbered():
    assert (
        rows_of(make_expert_sheet(three()))[0]["dialogue"] == "user: Guten Tag.\n2: Die Innenstadt."
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_neither_ids_nor_order_nor_neighbours_tell_a_score(seed):
    sheet = make_expert_sheet(SAMPLE, seed)
    items = {item_code(item): item for item in SAMPLE.items}
    ordered = [items[row["code"]] for row in rows_of(sheet)]
    scores = [one.score for one in ordered]
    assert set(rows_of(sheet)[0]) == {"code", "dialogue", "last_turn", "utterance", "judgment"}
    assert not any(item.item_id in sheet for item in SAMPLE.items)
    assert abs(spearmanr(range(300), scores).statistic) < 0.2  # 3.4 standard errors
    assert abs(spearmanr(scores[:-1], scores[1:]).statistic) < 0.2
    assert all(a.dialogue_id != b.dialogue_id for a, b in pairwise(ordered))
    level = {
        one.item_id: one.item_id[-1] for one in ordered
    }  # place among the dialogue's candidates
    first_round = Counter(level[one.item_id] for one in ordered[:60])
    assert all(count <= 24 for count in first_round.values())  # 12 expected, sd 3.1


def test_the_seed_decides_the_order():
    assert (
        make_expert_sheet(SAMPLE, 0) == make_expert_sheet(SAMPLE, 0) != make_expert_sheet(SAMPLE, 1)
    )


@pytest.mark.parametrize(
    ("written", "side"),
    [
        ("higher", "higher"), (" Higher ", "higher"), (">", "higher"), ("> 0.5", "higher"),
        (">0,5", "higher"),
        ("> .5", "higher"), ("höher", "higher"), ("Höher als 0,5", "higher"), ("higher than 0.5", "higher"),
        ("ho\u0308her", "higher"), ("lower", "lower"), ("<", "lower"), ("<0.5", "lower"), ("< 0.50", "lower"),
        ("niedriger", "lower"), ("NIEDRIGER als 0.5", "lower"), ("", None), ("  ", None),
    ],
)  # fmt: skip
def test_judgments_are_read_as_people_write_them(tmp_path, written, side):
    path = write(tmp_path, f'item_id,judgment\ni1,"{written}"\ni2,higher\ni3,lower\n')
    assert read_expert(path, three()) == {"i1": side, "i2": "higher", "i3": "lower"}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_filled_in_sheet_comes_back(tmp_path, separator):
    rows = rows_of(make_expert_sheet(SAMPLE))
    wanted = {item_code(item): "<" if item.score < 0.5 else ">" for item in SAMPLE.items}
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], delimiter=separator)
    writer.writeheader()
    writer.writerows(row | {"judgment": wanted[row["code"]]} for row in rows)
    result = read_expert(write(tmp_path, "\ufeff" + out.getvalue()), SAMPLE)
    assert result == {
        item.item_id: "lower" if item.score < 0.5 else "higher" for item in SAMPLE.items
    }


def test_every_problem_is_told_with_its_line(tmp_path):
    path = write(tmp_path, "item_id,judgment\ni1,maybe\ni9,higher\ni1,lower\ni2,= 0.5\n")
    with pytest.raises(InputError) as caught:
        read_expert(path, three())
    message = [str(problem).removeprefix(str(path)) for problem in caught.value.problems]
    assert [line.split(" ", 1)[0] for line in message] == [":2:", ":3:", ":4:", ":5:", ":"]
    for part, line in zip(
        ["'maybe'; expected higher", "'i9' is not in b.jsonl", "repeats the item_id 'i1' of line 2",
         "'= 0.5'", "1 items have no row (item_id i3)"],
        message, strict=True,
    ):  # fmt: skip
        assert part in line


def test_a_file_without_judgments_is_refused(tmp_path):
    with pytest.raises(InputError, match="no judgments; expected at least one"):
        read_expert(write(tmp_path, "item_id,judgment\ni1,\ni2,\ni3,\n"), three())
    with pytest.raises(
        InputError, match="columns item_id, score; expected judgment, and code or item_id"
    ):
        read_expert(write(tmp_path, "item_id,score\ni1,1\n"), three())


def test_an_item_at_the_middle_has_no_side():
    assert score_side(0.5) is None
    assert score_side((1 + (10 - 10) / 30) / 2) is None
    assert score_side(0.1 + 0.2 + 0.2) is None  # 0.5000000000000001 is rounding, no side
    check = compare_with_expert(three(), {"i1": "higher", "i2": "lower", "i3": None})
    whole = check.groups[0]
    assert (whole.items, whole.middle, whole.open, whole.agree, whole.share.n) == (3, 1, 1, 1, 1)
    assert check.mismatches == ()


def test_no_item_with_a_side_leaves_the_share_undefined_with_a_reason():
    check = compare_with_expert(Benchmark("b", (item(1, 0.5),)), {"i1": "higher"})
    share = check.groups[0].share
    assert math.isnan(share.value)
    assert share.reason == "no judged item with a score other than 0.5"


def table_4():
    """300 items of 60 dialogues; the expert differs on two, those of the paper."""
    items = [
        item(
            n, 0.9 if n % 5 else 0.2, f"d{n // 5}", source="CROWDSS" if n < 120 else "BAS SmartKom"
        )
        for n in range(300)
    ]
    items[7] = item(
        7, 0.65, "d1", "Die Innenstadt.", "Das Restaurant kann auf dem Land sein.", "CROWDSS"
    )
    items[51] = item(
        51, 0.35, "d10", "Wie weit ist das?", "Wo befindet sich das Restaurant?", "CROWDSS"
    )
    judged = {item.item_id: score_side(item.score) for item in items}
    return Benchmark("b", tuple(items)), judged | {"i7": "lower", "i51": "higher"}


def test_the_situation_of_table_4():
    check = compare_with_expert(*table_4())
    assert [(m.item.last_turn, m.item.score, m.row()["expert"]) for m in check.mismatches] == [
        ("Die Innenstadt.", 0.65, "< 0.5"),
        ("Wie weit ist das?", 0.35, "> 0.5"),
    ]
    by = {tuple(group.by.items()): (group.agree, group.share.n) for group in check.groups}
    assert by == {
        (): (298, 300),
        (("n_turns", 2),): (298, 300),
        (("source", "BAS SmartKom"),): (180, 180),
        (("source", "CROWDSS"),): (118, 120),
    }
    assert check.groups[0].share.value == pytest.approx(298 / 300)


@pytest.mark.parametrize(("agree", "n", "dialogues"), [(290, 300, 60), (45, 60, 12), (5, 10, 10)])
def test_the_interval_is_that_of_clopper_and_pearson(agree, n, dialogues):
    """Its ends are the shares under which what was seen has a probability of 2.5 % in its tail."""
    result = agreement_share(agree, n, dialogues)
    yes = agree * dialogues // n
    assert yes * n == agree * dialogues  # whole judgments, as the binomial distribution wants them
    assert binom.sf(yes - 1, dialogues, result.low) == pytest.approx(0.025)
    assert binom.cdf(yes, dialogues, result.high) == pytest.approx(0.025)


def test_the_interval_has_a_width_where_all_or_none_agree():
    every, none = agreement_share(300, 300, 60), agreement_share(0, 300, 60)
    assert (every.high, none.low) == (1.0, 0.0)
    assert every.low == pytest.approx(0.025 ** (1 / 60))
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 60))
    assert agreement_share(298, 300, 60).low < every.low  # less agreement, lower
