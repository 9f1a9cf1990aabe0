"""Ranking data out of rated pairs: by hand, by rule, and as it was published."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bws.base.problems import InputError
from giccs.evalrank.building import (
    BuildRules,
    build_ranking_data,
    read_frequent,
    write_ranking_files,
)
from giccs.evalrank.cli.build import build as build_command
from giccs.evalrank.data import read_sentences, read_words
from giccs.evalrank.published import PRESETS, compare_with_published, read_sources
from giccs.evalrank.similarity_data import SimilaritySet
from giccs.evalrank.similarity_formats import RatedPair

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
PUBLISHED = SHARED / "data" / "evalrank"
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason=f"{PUBLISHED} is not there; set GICCS_SHARED"
)


def rated(*rows, name="rated"):
    pairs = tuple(RatedPair(first, second, float(score)) for first, second, score in rows)
    return SimilaritySet(name, pairs, None, ((f"{name}.txt", "0" * 64),))


def ways(*pairs):
    return [f"{a}\t{b}" for first, second in pairs for a, b in [(first, second), (second, first)]]


EIGHT = [("a", "b", 1), ("c", "d", 5), ("e", "f", 4), ("g", "h", 4), ("a", "c", 4), ("b", "d", 0),
         ("e", "a", 3), ("g", "b", 2)]  # fmt: skip


def test_the_first_of_those_that_tie_at_the_cut_are_taken():
    built = build_ranking_data([rated(*EIGHT)])
    assert built.files["pos_pair.txt"] == ways(("c", "d"), ("e", "f"))
    assert built.files["basic_vocab.txt"] == list("cdefabgh")  # of the pairs, then of the file
    source = built.log["sources"][0]
    assert (source["cut"], source["tied_at_cut"], source["tied_at_cut_chosen"]) == (4.0, 3, 1)
    assert build_ranking_data([rated(*reversed(EIGHT))]).files["pos_pair.txt"] == ways(
        ("c", "d"), ("a", "c")
    )


@pytest.mark.parametrize(
    ("n", "top", "taken"), [(7, 0.25, 1), (8, 0.25, 2), (100, 0.29, 29), (3, 1, 3)]
)
def test_the_share_is_rounded_down(n, top, taken):
    rows = [(f"x{place}", f"y{place}", place) for place in range(n)]
    built = build_ranking_data([rated(*rows)], BuildRules(top=top))
    assert built.log["chosen"] == taken
    assert len(built.files["pos_pair.txt"]) == 2 * taken


def test_each_set_gives_its_own_share_and_what_repeats_goes():
    words = rated(("Sea", "sun", 9), ("sea", "sky", 8), ("x", "y", 0), ("x", "z", 0), name="one")
    other = rated(("sun", "sea", 2), ("SKY", "sky", 1), ("u", "v", 0), ("u", "w", 0), name="two")
    built = build_ranking_data(
        [words, other], BuildRules(top=0.5, lowercase=True), ["the", "sea", "The"]
    )
    assert built.files["pos_pair.txt"] == ways(("sea", "sun"), ("sea", "sky"))
    log = built.log
    assert (log["chosen"], log["repeated"], log["identical"], log["pairs"]) == (4, 1, 1, 4)
    assert built.files["basic_vocab.txt"] == ["sea", "sun", "sky", "x", "y", "z", "u", "v", "w"]
    assert built.files["wiki_vocab.txt"] == ["the", "sea"]
    assert (log["background"], log["all_background"]) == (9, 10)
    kept = build_ranking_data(
        [other], BuildRules(top=0.5, identical=True, lowercase=True, sort=True)
    )
    assert kept.files["pos_pair.txt"] == ["sea\tsun", "sky\tsky", "sun\tsea"]


def test_sentences_have_one_background_and_fit_on_lines():
    texts = rated(("a kite", "a\tred\nkite", 2), ("a kite", "no kite\r\nat all", 1))
    built = build_ranking_data([texts], BuildRules(top=0.5), ["rain today"])
    assert built.files == {
        "pos_pair.txt": ways(("a kite", "a red kite")),
        "background_sent.txt": ["a kite", "a red kite", "no kite at all", "rain today"],
    }
    assert built.log["sources"][0]["rewritten"] == 2


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.integers(0, 4)),
             min_size=4, max_size=40),
    st.sampled_from([0.25, 0.5, 1.0]),
)  # fmt: skip
def test_what_holds_for_any_data(rows, top):
    taken = sorted(rows, key=lambda row: -row[2])[: int(len(rows) * top)]
    assume(any(first != second for first, second, _ in taken))
    built = build_ranking_data([rated(*rows)], BuildRules(top=top))
    pairs = [tuple(line.split("\t")) for line in built.files["pos_pair.txt"]]
    assert len(set(pairs)) == len(pairs) == built.log["pairs"]
    assert {(second, first) for first, second in pairs} == set(pairs)
    assert all(first != second for first, second in pairs)
    background = built.files["basic_vocab.txt"]
    assert len(set(background)) == len(background)
    assert set(background) == {text for row in rows for text in row[:2]}
    cut = built.log["sources"][0]["cut"]
    scores = {frozenset(row[:2]): [] for row in rows}
    for row in rows:
        scores[frozenset(row[:2])].append(row[2])
    assert all(max(scores[frozenset(pair)]) >= cut for pair in pairs)
    above = {frozenset(row[:2]) for row in rows if row[2] > cut and row[0] != row[1]}
    assert above <= {frozenset(pair) for pair in pairs}


def test_what_cannot_be_built_is_said():
    with pytest.raises(
        InputError, match=r"rated.txt: rated: 0.25 of 3 pairs is less than one pair"
    ):
        build_ranking_data([rated(*EIGHT[:3])])
    with pytest.raises(
        InputError, match="one, two: each of the most similar pairs consists of identical"
    ):
        build_ranking_data(
            [rated(("a", "a", 2), ("a", "b", 1), name=name) for name in ("one", "two")],
            BuildRules(0.5),
        )
    with pytest.raises(ValueError, match="top is 0; expected a number above 0 and at most 1"):
        BuildRules(top=0)


def test_it_is_written_whole_into_a_new_folder(tmp_path):
    built = build_ranking_data([rated(*EIGHT)], frequent=["the"])
    write_ranking_files(built, tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "pos_pair.txt", "basic_vocab.txt", "wiki_vocab.txt", "build.json",
    }  # fmt: skip
    assert (tmp_path / "new" / "pos_pair.txt").read_text("utf-8") == "c\td\nd\tc\ne\tf\nf\te\n"
    log = json.loads((tmp_path / "new" / "build.json").read_text("utf-8"))
    assert log == json.loads(json.dumps(built.log))
    assert log["sources"][0]["files"] == [{"file": "rated.txt", "sha256": "0" * 64}]
    for taken in (tmp_path / "new", tmp_path / "new" / "build.json"):
        with pytest.raises(InputError, match="already exists and is not an empty folder"):
            write_ranking_files(built, taken)


def test_frequent_words_with_and_without_counts(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("the\t900\n\nof\t800\nand\n", "utf-8")
    assert read_frequent(path) == ["the", "of", "and"]
    path.write_text("".join(f"{number}\n" for number in range(20_001)), "utf-8")
    assert read_frequent(path) == [str(number) for number in range(20_000)]
    path.write_text("\n \n", "utf-8")
    with pytest.raises(InputError, match="no texts; expected one per line"):
        read_frequent(path)


def test_the_loader_takes_what_is_built(tmp_path):
    write_ranking_files(
        build_ranking_data([rated(*EIGHT)], frequent=["a", "the"]), tmp_path / "words"
    )
    words = read_words(str(tmp_path / "words"))
    assert words.described() == "4 pairs among 9 words"
    assert [words.texts[place] for place in words.pairs[0]] == ["c", "d"]
    assert not words.warnings
    texts = rated(("a kite", "a red kite", 2), ("a kite", "no kite", 1))
    write_ranking_files(build_ranking_data([texts], BuildRules(top=0.5)), tmp_path / "sentences")
    sentences = read_sentences(str(tmp_path / "sentences"))
    assert sentences.described() == "2 pairs among 3 sentences"


def published(name):
    preset = PRESETS[name]
    sets, missing = read_sources(preset, str(PUBLISHED))
    frequent = read_frequent(PUBLISHED / preset.frequent) if preset.frequent else []
    built = build_ranking_data(sets, preset.rules, frequent)
    return built, compare_with_published(built, preset, str(PUBLISHED)), missing


@needs_published
def test_the_published_words_are_rebuilt_byte_by_byte():
    built, likeness, missing = published("words")
    assert not missing
    assert {name: one["same_bytes"] for name, one in likeness.items()} == dict.fromkeys(
        ["pos_pair.txt", "basic_vocab.txt", "wiki_vocab.txt"], True
    )
    assert (built.log["pairs"], built.log["all_background"]) == (5514, 22207)  # Table 2


@needs_published
def test_of_the_published_words_no_other_rule_for_ties_gives_the_same():
    preset = PRESETS["words"]
    sets, _ = read_sources(preset, str(PUBLISHED))
    turned = [
        SimilaritySet(data_set.name, data_set.pairs[::-1], None, data_set.files)
        for data_set in sets
    ]
    likeness = compare_with_published(
        build_ranking_data(turned, preset.rules), preset, str(PUBLISHED)
    )["pos_pair.txt"]
    assert (likeness["only_here"], likeness["only_there"]) == (82, 88)


@needs_published
def test_the_published_sentences_are_rebuilt_as_far_as_their_sources_are_there():
    built, likeness, missing = published("sentences")
    pairs, background = likeness["pos_pair.txt"], likeness["background_sent.txt"]
    assert (pairs["there"], background["there"]) == (6989, 24957)  # Table 2
    assert pairs["only_here"] == background["only_here"] == 0
    assert built.log["identical"] == 13
    if missing:  # STR is under a licence of its own
        assert [Path(one.file).name for one in missing] == ["STR"]
        assert (pairs["equal"], background["equal"]) == (4241, 15437)
        assert pairs["same_order"]
    else:
        assert pairs["same_bytes"]
        assert background["same_bytes"]


def test_the_preset_of_sentences_on_a_small_folder(tmp_path):
    """Invented sentences in the published form, and what must come of them by hand."""

    def put(name, *lines):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    sts = [
        ("it snows", "it rains", 1),
        ("a kite", "a kite", 5),
        ("a cat", "the cat", 4),
        ("x y", "y z", 0),
    ]
    rows = [f"m\tf\ty\t{n}\t{score}\t{a}\t{b}" for n, (a, b, score) in enumerate(sts)]
    put("sent_similarity/STS/STSBenchmark/sts-train.csv", *rows[:3])
    put("sent_similarity/STS/STSBenchmark/sts-test.csv", rows[3])
    put(
        "sent_similarity/STR/str.csv",
        "Text,Score",
        '"One dog.\nA dog!",0.9',
        *['"a cat\nOne fox.",0.5'] * 3,
    )
    put("sent_evalrank/pos_pair.txt", "a kite\ta kite", "One dog.\tA dog!", "A dog!\tOne dog.")
    put("sent_evalrank/background_sent.txt", "a kite", "One dog.", "A dog!", "it rains", "else")
    preset = PRESETS["sentences"]
    sets, missing = read_sources(preset, str(tmp_path))
    assert not missing
    built = build_ranking_data(sets, preset.rules)
    likeness = compare_with_published(built, preset, str(tmp_path))
    assert likeness["pos_pair.txt"]["same_bytes"]
    assert built.files["background_sent.txt"] == [
        "a kite", "One dog.", "A dog!", "it snows", "it rains", "a cat", "the cat", "x y", "y z", "One fox.",
    ]  # fmt: skip
    background = likeness["background_sent.txt"]
    told = [
        background[key]
        for key in ("here", "there", "equal", "only_here", "only_there", "same_order")
    ]
    assert told == [10, 5, 4, 6, 1, False]


def test_a_preset_tells_what_it_lacks(tmp_path):
    with pytest.raises(
        InputError,
        match=r"no sources; expected at least one of word_similarity/EN-WS-353-ALL.txt, ",
    ):
        read_sources(PRESETS["words"], str(tmp_path))


def test_the_command_takes_every_preset():
    (preset,) = (param for param in build_command.params if param.name == "preset")
    assert [*preset.type.choices] == [*PRESETS]
