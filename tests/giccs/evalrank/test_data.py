"""Folders of pairs and background: what is read, what is refused with its line, and the published sets."""

import os
from pathlib import Path

import pytest

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.evalrank.data import EXPECTED_DATA, read_sentences, read_words

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
DATA = SHARED / "data" / "evalrank"
published = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not there; set GICCS_SHARED")


def folder(path, pairs, sentences=None, words=None, more=None, name="pos_pair.txt"):
    (path / name).write_text(pairs, "utf-8")
    for file, text in (
        ("background_sent.txt", sentences),
        ("basic_vocab.txt", words),
        ("wiki_vocab.txt", more),
    ):
        if text is not None:
            (path / file).write_text(text, "utf-8")
    return str(path)


def refused(read, data):
    with pytest.raises(InputError) as caught:
        read(data)
    return [str(problem).removeprefix(f"{data}/") for problem in caught.value.problems]


def test_pairs_are_places_in_the_background(tmp_path):
    data = folder(tmp_path, "b\ta\na\tb\n", "a\nb\nc\n")
    result = read_sentences(data)
    assert result.texts == ("a", "b", "c")
    assert result.pairs.tolist() == [[1, 0], [0, 1]]
    assert result.described() == "2 pairs among 3 sentences"
    assert (result.name, result.warnings) == (data, ())


def test_words_stand_in_one_or_two_files_which_may_share_some(tmp_path):
    data = folder(
        tmp_path, "car\tbus\n", words="car\nbus\n", more="the\nbus\n", name="pos_pair_1.txt"
    )
    assert read_words(data).texts == ("car", "bus", "the")
    (tmp_path / "wiki_vocab.txt").unlink()
    assert read_words(data).texts == ("car", "bus")


def test_only_white_space_at_the_ends_is_dropped(tmp_path):
    # A line separator and a second space are part of a text, and so is its case; \r\n is a line end.
    data = folder(tmp_path, " A b\tc  d\u2028e \r\n", "A b\r\nc  d\u2028e\r\na b\r\n")
    result = read_sentences(data)
    assert result.texts == ("A b", "c  d\u2028e", "a b")
    assert result.pairs.tolist() == [[0, 1]]


def test_every_fault_is_named_with_its_line(tmp_path):
    data = folder(tmp_path, "a\tb\na b\na\t\na\tx\ty\n\nz\tb\n", "a\n\nb\n")
    assert refused(read_sentences, data) == [
        "background_sent.txt:2: empty line; expected a sentence",
        "pos_pair.txt:2: 1 fields; expected anchor and positive, separated by a tab",
        "pos_pair.txt:3: empty text; expected anchor and positive, separated by a tab",
        "pos_pair.txt:4: 3 fields; expected anchor and positive, separated by a tab",
        "pos_pair.txt:5: empty line; expected anchor and positive, separated by a tab",
        "pos_pair.txt:6: 'z' is missing from the background; expected both texts of a pair there",
    ]


def test_repeats_count_once_and_pairs_of_one_text_stay_and_both_are_told(tmp_path):
    data = folder(tmp_path, "a\tb\nb\tb\na\tb\na\tb\n", "a\nb\na\n")
    result = read_sentences(data)
    assert (result.texts, result.pairs.tolist()) == (("a", "b"), [[0, 1], [1, 1]])
    assert [str(warning).removeprefix(f"{data}/") for warning in result.warnings] == [
        "background_sent.txt:3: 1 repeated sentences are used once; first occurrence here",
        "pos_pair.txt:3: 2 repeated pairs are used once; first occurrence here",
        "pos_pair.txt:2: 1 pairs consist of identical texts; their rank is 1; first occurrence here",
    ]


def test_what_is_no_such_folder_is_refused(tmp_path):
    (words,) = refused(read_words, str(tmp_path))
    benchmark, sentences = refused(read_sentences, str(tmp_path))
    assert words == sentences == f"{tmp_path}: {EXPECTED_DATA}"
    assert "neither the GiCCS release" in benchmark
    none = str(tmp_path / "none")
    assert refused(read_sentences, none) == [f"{none}: no such file", f"{none}: {EXPECTED_DATA}"]
    data = folder(tmp_path, "a\tb\n")
    assert refused(read_sentences, data) == ["background_sent.txt: no such file"]
    (tmp_path / "basic_vocab.txt").write_text("a\n")
    (problem,) = refused(read_sentences, data)
    assert problem.endswith(
        "background_sent.txt is missing; the folder contains words (--task evalrank-word)"
    )
    (tmp_path / "background_sent.txt").write_text("a\n")
    (tmp_path / "pos_pair.txt").write_text("")
    assert refused(read_sentences, data) == ["pos_pair.txt: no pairs; expected one per line"]
    (tmp_path / "pos_pair.txt").rename(tmp_path / "pos_pair_1.txt")
    (tmp_path / "pos_pair_2.txt").write_text("")
    assert refused(read_sentences, data) == [
        f"{tmp_path}: 2 files of pairs (pos_pair_1.txt, pos_pair_2.txt); expected one pos_pair.txt"
    ]


def test_the_fingerprint_is_that_of_the_content(tmp_path):
    data = folder(tmp_path, "a\tb\nb\ta\n", "a\nb\nc\n")
    whole = read_sentences(data)
    moved = tmp_path / "moved"
    moved.mkdir()
    assert (
        read_sentences(folder(moved, "a\tb\nb\ta\n", "a\nb\nc\n")).fingerprint == whole.fingerprint
    )
    first = whole.first(1)
    assert (first.pairs.tolist(), first.texts) == ([[0, 1]], whole.texts)
    assert first.fingerprint != whole.fingerprint


# The published sets: EvalRank, Table 2


@published
def test_the_published_sentences_are_those_of_table_2():
    result = read_sentences(str(DATA / "sent_evalrank"))
    assert result.described() == "6,989 pairs among 24,957 sentences"
    (warning,) = result.warnings
    assert "13 pairs consist of identical texts" in str(warning)
    pairs = {*map(tuple, result.pairs.tolist())}
    assert {(y, x) for x, y in pairs} == pairs


@published
def test_the_published_words_are_those_of_table_2():
    result = read_words(str(DATA / "word_evalrank"))
    assert result.described() == "5,514 pairs among 22,207 words"
    assert result.warnings == ()


# A GiCCS benchmark


def items(dialogue, last, *candidates):
    turns = (Turn("user", "Guten Tag"), Turn("system", last))
    return [
        Item(f"{dialogue}-{n}", dialogue, "chat", "hotel", turns, f"{n}", text, score)
        for n, (text, score) in enumerate(candidates)
    ]


def test_a_benchmark_pairs_last_turns_with_their_best_candidates(tmp_path):
    path = tmp_path / "benchmark.jsonl"
    rows = [
        *items("d1", "Wann denn?", ("Um wie viel Uhr?", 0.9), ("Wo?", 0.2), ("Bitte.", 0.0)),
        *items("d2", "Danke.", ("Vielen Dank.", 0.8), ("Ich danke.", 0.8), ("Bitte.", 0.1)),
    ]
    write_benchmark(rows, path)
    result = read_sentences(str(path))
    texts = [(result.texts[x], result.texts[y]) for x, y in result.pairs]
    assert texts == [
        ("Wann denn?", "Um wie viel Uhr?"),
        ("Danke.", "Vielen Dank."),
        ("Danke.", "Ich danke."),
    ]
    assert len(result.texts) == 7  # "Bitte." is one sample
    assert [warning.message for warning in result.warnings] == [
        "in 1 dialogues several candidates share the highest score; each is a positive"
    ]


def test_the_sample_is_a_ranking_task():
    result, sample = read_sentences("giccs-sample"), read_benchmark("giccs-sample")
    assert len(result.pairs) == len(sample.dialogue_ids)
    assert set(result.texts) == {
        text for item in sample.items for text in (item.last_turn, item.utterance)
    }
