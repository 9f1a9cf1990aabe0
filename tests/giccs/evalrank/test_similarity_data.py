"""Rated pairs are read from every form in which they are published. The examples are invented."""

import gzip
import json
import os
from pathlib import Path

import pytest

from bws.base.problems import InputError
from giccs.evalrank.similarity_data import read_similarity
from giccs.evalrank.similarity_formats import Columns, RatedPair, read_rated

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
PUBLISHED = SHARED / "data" / "evalrank"
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason=f"{PUBLISHED} is not there; set GICCS_SHARED"
)
STS = "main-news\theadlines\t2014\t0017\t3.400\t{}\t{}"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score"
KITES = ("A red kite flies.", "A kite is in the air.")
BUSES = ('A bus "waits', "A bus, big and red, stops")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def problems_of(path, columns=None):
    with pytest.raises(InputError) as caught:
        read_similarity(path, columns)
    return [str(problem).removeprefix(str(path)) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("\n".join(["sun sea 3", "sun sky\t4.5\r", ""]), None),
        ("sun\tsea\t3\nsun\tsky\t4.5", None),
        ("3\tsun\tsea\n4.5\tsun\tsky\n", None),
        ("text1,text2,score\nsun,sea,3\nsun,sky,4.5\n", None),
        ("score\tsentence2\tsentence1\n3\tsea\tsun\n4.5\tsky\tsun\n", None),
        (f"{SICK}\r\n1\tsun\tsea\t3\r\n2\tsun\tsky\t4.5\r\n", (1, 5)),
        ("m\tf\t1\t1\t3\tsun\tsea\nm\tf\t1\t2\t4.5\tsun\tsky\tmore\tfields\n", (0, 5)),
    ],
)  # fmt: skip
def test_the_same_pairs_in_every_form(tmp_path, text, scale):
    read = read_rated(write(tmp_path / "rated.txt", text))
    assert read.pairs == (RatedPair("sun", "sea", 3.0), RatedPair("sun", "sky", 4.5))
    assert read.scale == scale


def test_nothing_is_quoted_in_sts_and_quotes_are_quotes_in_a_table(tmp_path):
    sts = write(tmp_path / "sts-dev.csv", STS.format(*KITES) + "\n" + STS.format(*BUSES) + "\n")
    assert read_rated(sts).pairs == (RatedPair(*KITES, 3.4), RatedPair(*BUSES, 3.4))
    table = write(
        tmp_path / "a.csv", 'text1,text2,score\n"A bus ""waits","A bus, big\nand red",2\n'
    )
    assert read_rated(table).pairs == (RatedPair('A bus "waits', "A bus, big\nand red", 2.0),)


def test_two_texts_in_one_cell(tmp_path):
    rows = 'Index,Text,Score\n0,"A kite.\nIt flies.",1.0\n1,"""Two"" words\n\'Two\' lines",0.65\n'
    read = read_rated(write(tmp_path / "str.csv", rows))
    assert read.pairs == (
        RatedPair("A kite.", "It flies.", 1.0),
        RatedPair('"Two" words', "'Two' lines", 0.65),
    )
    assert read.scale == (0, 1)
    quoted = 'PairID,Text,Score\na,"""A kite.""\n""It flies.""",0.5\nb,"""One""\n""Two""",0.25\n'
    read = read_rated(write(tmp_path / "semrel.csv", quoted))
    assert read.pairs == (RatedPair("A kite.", "It flies.", 0.5), RatedPair("One", "Two", 0.25))


def test_headers_of_semrel_in_all_spellings(tmp_path):
    """The Afrikaans pilot data write the score in lower case, and a text may have a line break in quotes."""
    pilot = 'PairID,Text,score\nAFR-dev-1,"A kite.\nIt flies.",0.56\n'
    assert read_rated(write(tmp_path / "pilot.csv", pilot)).pairs == (
        RatedPair("A kite.", "It flies.", 0.56),
    )
    broken = (
        'PAIR ID, TEXT ,Score\na,"""A\nkite.""\n\n""It flies.""",0.5\nb,"""One""\n\n""Two""",0.25\n'
    )
    read = read_rated(write(tmp_path / "broken.csv", broken))
    assert read.pairs == (RatedPair("A\nkite.", "It flies.", 0.5), RatedPair("One", "Two", 0.25))
    assert read.scale == (0, 1)


def test_rated_pairs_of_a_german_spreadsheet(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes("sep=;\nSentence 1;SENTENCE2; Score\nSonne;Meer;0,5\n".encode("utf-16"))
    assert read_rated(path).pairs == (RatedPair("Sonne", "Meer", 0.5),)
    assert read_rated(path, Columns("sentence1", "sentence2", "score")).pairs[0].score == 0.5


def test_columns_that_are_named(tmp_path):
    path = write(tmp_path / "a.csv", "id,left,right,mean\n7,sun,sea,0.5\n")
    assert read_rated(path, Columns("left", "right", "mean")).pairs[0] == ("sun", "sea", 0.5)
    assert problems_of(path, Columns("left", "wrong", "mean")) == [
        ": no column wrong; existing columns are id, left, right, mean"
    ]
    assert problems_of(path)[0].startswith(
        ": unknown format of rated pairs (first line: id, left, right, mean); expected a header"
    )


def test_a_benchmark_of_giccs(benchmark_file):
    read = read_rated(benchmark_file)
    first = json.loads(benchmark_file.read_text("utf-8").splitlines()[0])
    assert read.pairs[0] == (first["turns"][-1]["text"], first["utterance"], first["score"])
    assert read.scale == (0, 1)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sun sea 3\nsun\nsun sky high\nsun sky 1 2\nsun sky nan\nsun sky 1_0", [
            ":2: 1 fields; expected 3",
            ":3: the score is 'high'; expected a number",
            ":4: 4 fields; expected 3, separated by tabs if a text contains spaces",
            ":5: the score is 'nan'; expected a number",
            ":6: the score is '1_0'; expected a number",
        ]),
        ("a\tb\tc\td\t5.1\tsun\tsea\n\na\tb\tc\td\t5\tsun\n", [
            ":1: the score is 5.1; expected a number from 0 to 5",
            ":3: 6 fields; expected 7 or more",
        ]),
        ("text1,text2,score\n,sea,1\nsun,sea\n", [
            ":2: empty text; expected two texts per pair",
            ":3: 2 fields; expected 3, as in the first row",
        ]),
        ('Text,Score\n"one\ntwo\nthree",0.5\nalone,2\n', [
            ":2: 3 lines of text; expected two texts, one per line",
            ":5: 1 lines of text; expected two texts, one per line",
        ]),
        ("text1,text2,score\n", [": no pairs; expected at least one"]),
        ("", [": empty; expected rows"]),
        ("sun,sea,3\nsun,sky,4\n", None),
    ],
)  # fmt: skip
def test_every_fault_is_told_with_its_line(tmp_path, text, found):
    problems = problems_of(write(tmp_path / "rated.txt", text))
    if found is None:
        assert problems[0].startswith(": unknown format")
    else:
        assert problems == found


def test_a_folder_of_sets_and_a_set_in_parts(tmp_path):
    for name in ("b.txt", "a.txt", "README.txt", "notes.md", ".hidden.txt"):
        write(tmp_path / "words" / name, f"sun sea {len(name)}\n")
    (tmp_path / "words" / "c.csv.gz").write_bytes(gzip.compress(b"word1,word2,score\nsun,sky,2\n"))
    result = read_similarity(tmp_path / "words")
    assert [data_set.name for data_set in result.sets] == ["a", "b", "c"]
    assert result.described() == "3 pairs in 3 sets"
    write(tmp_path / "sts" / "sts-test.csv", STS.format(*KITES))
    write(tmp_path / "sts" / "sts-train.csv", STS.format(*BUSES))
    result = read_similarity(tmp_path / "sts")
    (one,) = result.sets
    assert (one.name, one.scale, result.described()) == ("STS-Benchmark", (0, 5), "2 pairs")
    assert [pair.text1 for pair in one.pairs] == [BUSES[0], KITES[0]]  # train before test
    assert [warning.message for warning in result.warnings] == [
        "STS-Benchmark: sts-dev.csv missing; the set contains the other files only"
    ]


def test_a_folder_tells_of_all_its_files_at_once(tmp_path):
    write(tmp_path / "a.txt", "sun sea x 3\n")
    write(tmp_path / "b.txt", "sun sea 3\nsun\n")
    problems = problems_of(tmp_path)
    assert problems[0].startswith("/a.txt: unknown format")
    assert problems[1] == "/b.txt:2: 1 fields; expected 3"
    (tmp_path / "empty" / "SICK").mkdir(parents=True)
    (problem,) = problems_of(tmp_path / "empty")
    assert problem.startswith(
        ": no data files; expected a file or folder with files that end with .txt"
    )
    assert problem.endswith("(subfolders: SICK)")
    write(tmp_path / "empty" / "pos_pair.txt", "sun\tsea\n")
    (problem,) = problems_of(tmp_path / "empty")
    assert problem.startswith(": ranking data (for evalrank-* and uniformity)")
    assert problems_of(tmp_path / "none.txt") == [": no such file"]


def semeval(folder, name, texts, gold, prefix="STS"):
    write(folder / f"{prefix}.input.{name}.txt", texts)
    write(folder / f"{prefix}.gs.{name}.txt", gold)


def test_the_files_of_semeval_sts_are_read(tmp_path):
    semeval(
        tmp_path,
        "MSRvid",
        "A dog runs.\tA dog is running.\r\nA kite.\tA bus.\r\n",
        "4.800\r\n0\r\n",
    )
    semeval(tmp_path, "surprise.OnWN", 'to "run"\tto move\n', "2.5\n")
    semeval(  # of 2016: two more fields; pairs that nobody rated have a blank line, here also the last
        tmp_path, "plagiarism", "a b\tc d\tx.html\ty.html\ne f\tg h\tx\ty\ni j\tk l\tx\ty\n",
        "\n3\n\n", "STS2016",
    )  # fmt: skip
    write(tmp_path / "STS.gs.ALL.txt", "4.8\n0\n2.5\n")
    write(tmp_path / "STS.gs.SMT.txt", "1\n")
    write(tmp_path / "correlation.pl", "print 1\n")
    result = read_similarity(tmp_path)
    assert {data_set.name: data_set.pairs for data_set in result.sets} == {
        "MSRvid": (RatedPair("A dog runs.", "A dog is running.", 4.8), RatedPair("A kite.", "A bus.", 0.0)),
        "surprise.OnWN": (RatedPair('to "run"', "to move", 2.5),),
        "plagiarism": (RatedPair("e f", "g h", 3.0),),
    }  # fmt: skip
    assert {data_set.scale for data_set in result.sets} == {(0, 5)}
    assert [warning.message for warning in result.warnings] == [
        "STS.gs.ALL.txt, STS.gs.SMT.txt: skipped, part of no set",
        "plagiarism: 2 of 3 rows have no gold score; skipped",
    ]
    single = read_similarity(tmp_path / "STS.input.MSRvid.txt")
    assert (single.sets[0].name, single.described()) == ("MSRvid", "2 pairs")
    assert [Path(file).name for file, _ in single.sets[0].files] == [
        "STS.input.MSRvid.txt", "STS.gs.MSRvid.txt",
    ]  # fmt: skip


def test_a_joint_file_of_semeval_does_not_count_twice(tmp_path):
    semeval(tmp_path, "ALL", "a\tb\nc\td\n", "1\n2\n")
    assert [data_set.name for data_set in read_similarity(tmp_path).sets] == ["ALL"]
    semeval(tmp_path, "one", "a\tb\n", "1\n")
    result = read_similarity(tmp_path)
    assert [data_set.name for data_set in result.sets] == ["one"]
    assert "STS.gs.ALL.txt, STS.input.ALL.txt: skipped" in result.warnings[0].message


def test_faults_of_semeval_sts_name_the_file_that_has_them(tmp_path):
    semeval(tmp_path / "a", "x", "a\tb\nno tab\na\t \na\tb\n", "1\n2\n3\n5.5\n")
    semeval(tmp_path / "a", "y", "a\tb\nc\td\n", "1\n")
    write(tmp_path / "a" / "STS.input.z.txt", "a\tb\n")
    assert problems_of(tmp_path / "a") == [
        "/STS.input.x.txt:2: 1 field; expected two sentences, separated by a tab",
        "/STS.input.x.txt:3: empty text; expected two texts per pair",
        "/STS.gs.x.txt:4: the score is 5.5; expected a number from 0 to 5",
        "/STS.gs.y.txt: 1 lines; expected 2, the number of lines of STS.input.y.txt",
        "/STS.input.z.txt: no gold scores; expected a file STS.gs.z.txt",
    ]
    (problem,) = problems_of(tmp_path / "a" / "STS.gs.x.txt")
    assert problem.startswith(": gold scores without texts; expected STS.input.NAME.txt")
    write(tmp_path / "b" / "STS.gs.x.txt", "1\n")
    (problem,) = problems_of(tmp_path / "b")
    assert problem.startswith(": gold scores (STS.gs.*) without texts")
    semeval(tmp_path / "c", "x", "a\tb\n", "\n")
    assert problems_of(tmp_path / "c") == ["/STS.input.x.txt: no pairs; expected at least one"]


def test_pairs_that_repeat_stay_and_are_counted(tmp_path):
    path = write(tmp_path / "a.txt", "sun sea 3\nsea sun 2\nsky sky 5\nsun sea 3\n")
    result = read_similarity(path)
    assert len(result.sets[0].pairs) == 4
    assert [str(warning) for warning in result.warnings] == [
        f"{path}: a: 2 of 4 pairs repeat an earlier one and are kept"
    ]


def test_the_fingerprint_is_of_the_content(tmp_path):
    one = read_similarity(write(tmp_path / "a.txt", "sun sea 3\nsun sky 4\n"))
    other = read_similarity(
        write(tmp_path / "b.csv", "score,text1,text2\n4.0,sun,sky\n3.0,sun,sea\n")
    )
    assert one.fingerprint == other.fingerprint
    assert one.first(1).fingerprint != one.fingerprint
    assert one.first(1).described() == "1 pairs"
    assert read_similarity(tmp_path).fingerprint != one.fingerprint


@needs_published
def test_the_published_sets_are_read_whole():
    words = read_similarity(PUBLISHED / "word_similarity")
    assert [len(data_set.pairs) for data_set in words.sets] == [
        30, 3000, 287, 771, 65, 2034, 999, 3500, 144, 353, 252, 203, 130,
    ]  # fmt: skip
    sts = read_similarity(PUBLISHED / "sent_similarity" / "STS" / "STSBenchmark")
    assert (sts.described(), sts.sets[0].scale) == ("8628 pairs", (0, 5))
    sick = read_similarity(PUBLISHED / "sent_similarity" / "SICK")
    assert (sick.described(), sick.sets[0].scale) == ("9927 pairs", (1, 5))
    german = read_similarity(SHARED / "data" / "stsb-de")
    assert [len(data_set.pairs) for data_set in german.sets] == [1500, 1379]
    hindi = read_similarity(SHARED / "data" / "semrel2024" / "hin_dev_with_labels.csv")
    assert len(hindi.sets[0].pairs) == 288
    assert not any('"' in text[:1] for pair in hindi.sets[0].pairs for text in pair[:2])
