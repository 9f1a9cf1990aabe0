"""Items that are texts and differ in white space, case and punctuation only."""

import csv
import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from bws.cli import agreement, make_tuples, reliability, score
from bws.files import judgments_from_records, read_judgments
from bws.files.variants import find_variants, variant_key
from bws.records import Judgment

ARABIC = Path(os.environ.get("GICCS_SHARED", "../shared")) / "data/semrel2024/arq_bws.csv"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A dog barks.", "a dog\nbarks"),
        ("A dog barks.", "a dogbarks"),  # a line break was lost
        ("Straße, nass", "STRASSE NASS"),
        ("e\u0301te\u0301 chaud", "été  chaud!"),
        ("مرحبا بالعالم", "مرحبابالعالم."),
        ("你好，世界。", "你好世界"),
        ("soft\u00adhyphen here", "softhyphen here"),
        ("\u200fשלום עולם", "שלום עולם"),
    ],
)
def test_texts_that_differ_in_white_space_case_and_punctuation_are_variants(one, other):
    result = find_variants([one, "another text", other])
    assert result.spellings == ((one, other),)
    assert (result.n_items, result.n_distinct) == (3, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a-1", "a1"),  # ids
        ("x.1", "x1"),
        ("A", "a"),
        ("d1_utt-2", "d1utt2"),
        ("don't", "dont"),  # words
        ("#joy", "joy"),
        ("?!", "..."),  # nothing is left of them
        ("! !", "? ?"),
        ("item 1.1", "item 11"),  # digits do not join
        ("about 1 000", "about 1000"),
        ("10² metres", "102 metres"),
        ("good 👍", "good 👎"),  # symbols stay
        ("a family 👨\u200d👩", "a family 👨👩"),
        ("क ख", "का ख"),  # combining marks stay
        ("schon da", "schön da"),
        ("a b ||| c", "a ||| b c"),  # pairs of sentences
    ],
)
def test_ids_words_digits_marks_and_symbols_are_not_variants(one, other):
    assert find_variants([one, other]) is None


def test_items_of_different_groups_are_not_compared():
    assert find_variants(["a b", "A b"], ["g", "h"]) is None
    assert find_variants(["a b", "A b"], ["g", "g"]).spellings == (("a b", "A b"),)


def test_the_most_frequent_spelling_comes_first_and_of_equal_ones_the_first():
    assert find_variants(["a b", "A b", "A B"], counts=[1, 3, 3]).spellings == (
        ("A b", "A B", "a b"),
    )


def test_the_key_of_a_key_is_the_key():
    for text in ("A dog, barks!", "ŉ ǰ ΐ", "İstanbul ẞ", "1 2", "ﬁ x", "\u0345\u0301 a"):
        assert variant_key(variant_key(text)) == variant_key(text)


TEXTS = [
    "the dog barks",
    "a cat sleeps",
    "it rains today",
    "we are late",
    "no one came",
    "go home now",
]


def written(text, way):
    """The text as different files write it: with a line break, without, with capitals."""
    words = text.split()
    return [
        text,
        f"{words[0]}\n{words[1]} {words[2]}",
        f"{words[0]}{words[1]} {words[2]}",
        f"{text.capitalize()}.",
    ][way]


@pytest.fixture
def arb_like(tmp_path, monkeypatch):
    """Judgments with the defects of SemRel's raw files: positions, items as lists, four spellings of each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = []
    for members in combinations(range(6), 4):
        for _ in range(4):
            worst, *_, best = sorted(members)  # they agree on the order of the texts
            ways = rng.integers(4, size=4)
            cells = [
                str([written(TEXTS[m], w), f"then {TEXTS[m]}"])
                for m, w in zip(members, ways, strict=True)
            ]
            rows.append([*cells, members.index(best) + 1, members.index(worst) + 1])
    rows[30:30] = [["SentPair1", "SentPair2", "SentPair3", "SemPair4", "Best", "Worst"]]
    with open("arb.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [["SentPair1", "SentPair2", "SentPair3", "SemPair4", "Best", "Worst"]]
        )
        csv.writer(file).writerows(rows)
    return tmp_path


def run(command, *arguments, code=0):
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exit_code == code, done.stderr
    return done.stdout, done.stderr


def test_split_items_are_reported_and_merged(arb_like):
    split, err = run(score, "arb.csv", "--on-invalid", "skip", "--json")
    document = json.loads(split)
    # line breaks inside a sentence are single spaces already: of four spellings three are left
    assert len(document["scores"]) == 18
    assert document["variants"]["items"] == 18
    assert (document["variants"]["distinct"], document["variants"]["merged"]) == (6, False)
    assert len(document["variants"]["examples"]) == 6
    assert (
        "warning: arb.csv: 18 items are 6 when white space, case and punctuation are ignored" in err
    )
    assert "--merge-variants merges them" in err

    merged, err = run(score, "arb.csv", "--on-invalid", "skip", "--merge-variants", "--json")
    document = json.loads(merged)
    assert len(document["scores"]) == len(TEXTS)
    assert {row["appearances"] for row in document["scores"]} == {40}
    assert document["variants"]["merged"] is True
    assert "arb.csv: 18 items are 6 after variants" in err
    best = max(document["scores"], key=lambda row: row["score"])
    assert best["item"].endswith("then go home now")


def test_reliability_and_agreement_merge_alike(arb_like):
    shared = ("arb.csv", "--on-invalid", "skip", "--json")
    rho = {}
    for merging in ((), ("--merge-variants",)):
        out, _ = run(reliability, *shared, *merging)
        (group,) = json.loads(out)["groups"]
        rho[bool(merging)] = group["spearman"]["mean"]
        assert group["items"] == (6 if merging else 18)
        out, _ = run(agreement, *shared, *merging)
        assert json.loads(out)["variants"]["merged"] is bool(merging)
        assert json.loads(out)["groups"][0]["tuples"] == (15 if merging else 57)
    assert rho[True] == pytest.approx(1)


def test_without_variants_nothing_is_added_to_the_json(arb_like):
    (arb_like / "j.csv").write_text("item1,item2,best,worst\na-1,a1,a-1,a1\nA,a,a,A\n")
    for merging in ((), ("--merge-variants",)):
        out, err = run(score, "j.csv", "--json", *merging)
        assert "variants" not in json.loads(out)
        assert [row["item"] for row in json.loads(out)["scores"]] == ["a-1", "a1", "A", "a"]
        assert "warning" not in err


HEADER = "tuple_id,group,item1,item2,item3,best,worst,annotator,shown\n"


def read(tmp_path, *rows, **options):
    path = tmp_path / "j.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return read_judgments(path, **options)


def test_answers_tuple_ids_and_the_order_shown_follow_the_items(tmp_path):
    rows = (
        "t1,g,the cat,the dog,a cow,The dog!,a cow,w1,a cow;the cat;the dog",
        "t1,g,the cat,The Dog,a cow,The Dog,the cat,w2,The Dog;a cow;the cat",
        "t1,g,a cow,the dog,The  cat,a cow,the dog,w3,the dog;The  cat;a cow",
        "t2,h,The Dog,the cat,a cow,a cow,the cat,w1,a cow;the cat;The Dog",
    )
    with pytest.raises(InputError) as caught:
        read(tmp_path, *rows)
    assert "--merge-variants merges them" in str(caught.value)
    result = read(tmp_path, *rows, merge_variants=True)
    assert result.tuples.items.tolist() == [
        "the cat",
        "the dog",
        "a cow",
        "The Dog",
        "the cat",
        "a cow",
    ]
    assert result.tuples.ids.tolist() == ["t1", "t2"]
    assert [(r.best, r.worst, r.items) for r in result.records()] == [
        ("the dog", "a cow", ("a cow", "the cat", "the dog")),
        ("the dog", "the cat", ("the dog", "a cow", "the cat")),
        ("a cow", "the dog", ("the dog", "the cat", "a cow")),
        ("a cow", "the cat", ("a cow", "the cat", "The Dog")),  # another group, its own spelling
    ]
    assert result.variants.spellings == (("the cat", "The  cat"), ("the dog", "The Dog"))


def test_variants_in_one_tuple_cannot_be_merged(tmp_path):
    row = "t1,,the cat,The cat!,a cow,the cat,a cow,w1,"
    assert len(read(tmp_path, row).tuples.items) == 3
    with pytest.raises(InputError, match="item1 and item2 are both 'the cat'"):
        read(tmp_path, row, merge_variants=True)


def test_records_tell_of_variants():
    result = judgments_from_records(
        [Judgment(("a b", "c"), "a b", "c"), Judgment(("A b", "d"), "d", "A b")]
    )
    assert result.variants.spellings == (("a b", "A b"),)
    assert result.select(np.array([0])).variants is result.variants


def test_a_design_of_variants_is_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "i.txt").write_text("the dog\nThe dog.\na cat\na cow\n")
    out, err = run(make_tuples, "i.txt", "-k", 3)
    assert len(out.splitlines()) == 5
    assert "4 items are 3 when white space" in err
    assert "each spelling is a separate item" in err


def test_batches_that_spell_their_items_differently_are_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "item1,item2,item3,best,worst\nthe dog,a cat,x,the dog,x\na cat,x,y,a cat,y\n"
    (tmp_path / "1.csv").write_text(rows)
    (tmp_path / "2.csv").write_text(rows.replace("the dog", "The dog!"))
    _, err = run(score, "2.csv", "--anchor", "1.csv", "--merge-variants")
    assert "2.csv: with --anchor, 5 items are 4 when" in err
    assert "only items with the same spelling link the batches" in err


@pytest.mark.skipif(not ARABIC.exists(), reason=f"{ARABIC} is not there; set GICCS_SHARED")
def test_the_raw_arabic_file_has_half_as_many_items_when_merged():
    split = read_judgments(ARABIC, on_invalid="skip")
    merged = read_judgments(ARABIC, on_invalid="skip", merge_variants=True)
    assert (len(split.tuples.items), len(merged.tuples.items)) == (4006, 2023)
    assert (split.variants.n_items, split.variants.n_distinct) == (4006, 2023)
    assert len(split) == len(merged) == 7359


@pytest.mark.parametrize(
    ("other", "merge", "is_reported"),
    [
        ("apple", True, True),
        ("apple", False, False),  # Ids often differ in case alone.
        ("Apple\u200b", True, True),
        ("Apple\u200b", False, True),
        ("Pear", True, False),
    ],
)
def test_words_that_stay_apart_are_reported(other, merge, is_reported, tmp_path):
    path = tmp_path / "j.csv"
    path.write_text(
        f"item1,item2,item3,best,worst,annotator\nApple,b,c,Apple,b,x\n{other},b,c,{other},b,y\n"
    )
    judgments = read_judgments(path, merge_variants=merge)
    notes = [note for note in judgments.notes if "single words or ids" in note]
    assert len(notes) == is_reported
    assert all(note.startswith("2 items") and "'Apple' and" in note for note in notes)
    assert len(judgments.tuples.items) == 4
