"""Candidate pairs: by brute force over all pairs, by hand, and as a person runs the command."""

import csv
import itertools
import json
import math
import re
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.csts.cli.pairs import pairs as command
from giccs.csts.mining import candidates as mining
from giccs.csts.mining import filters, neighbours
from giccs.csts.mining.candidates import Candidates, Tally, mine, sampled, write_pairs
from giccs.csts.mining.captions import read_captions
from giccs.csts.mining.embeddings import encoded, read_array, source_means, units_of
from giccs.csts.mining.filters import (
    FILTERS,
    bags_of,
    ious,
    passes,
    ratios,
)
from giccs.csts.mining.neighbours import nearest, source_pairs
from giccs.csts.mining.thresholds import PRESETS, Thresholds
from giccs.models import open_model
from tests.nightly import others_nightly

NOUNS = ["man", "woman", "dog", "child", "surfer", "cyclist", "train", "chef", "singer", "horse"]
REST = [
    "rides",
    "holds",
    "watches",
    "red",
    "wooden",
    "old",
    "large",
    "beach",
    "lake",
    "park",
    "snow",
]
OPEN = Thresholds(1, 0, 0, 0)


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def written(path, sources):
    lines = (json.dumps({"source_id": name, "captions": texts}) for name, texts in sources.items())
    path.write_text("\n".join(lines), "utf-8")
    return path


def made(seed=0, number=12):
    """Sources with one to four captions of three to nine words, some of which other sources have too."""
    rng = generator(seed)
    common = ["the old dog watches the lake", "a chef in the kitchen"]
    sources = {}
    for source in range(number):
        texts = [
            " ".join(["a", rng.choice(NOUNS), *rng.choice(REST, size=rng.integers(1, 8))])
            for _ in range(rng.integers(1, 4))
        ]
        sources[f"s{source}"] = [*dict.fromkeys(texts), *common[: source % 3]]
    return sources


def prepared(tmp_path, sources, k=3, width=4, seed=0):
    captions = read_captions(written(tmp_path / "captions.jsonl", sources))
    rng = generator(seed)
    texts = units_of(rng.normal(size=(len(captions.texts), width)), "made")
    units = source_means(texts, captions)
    bags = bags_of(captions.texts, {"a", "the", "in"})
    first, second = source_pairs(nearest(units_of(units, "made"), k))
    return Candidates(captions, texts, bags, first, second)


def joined(chunks):
    return sampled(chunks, 10**9)


# --- captions


def test_lines_and_rows_are_read_alike_whatever_their_order(tmp_path):
    lines = written(tmp_path / "a.jsonl", {"x": ["One. ", "Two."], "y": ["Three."]})
    table = tmp_path / "a.csv"
    table.write_text("id,caption,source_id\n1,One.,x\n2,Three.,y\n3, Two.,x\n", "utf-8")
    one, other = read_captions(lines), read_captions(table)
    for result in (one, other):
        assert result.sources == ("x", "y")
        assert result.texts == ("One.", "Two.", "Three.")
        assert result.starts.tolist() == [0, 2, 3]
    assert one.lines.tolist() == [1, 1, 2]
    assert other.lines.tolist() == [2, 4, 3]
    assert (one.caption_indices.tolist(), other.caption_indices.tolist()) == ([0, 1, 2], [0, 2, 1])


def test_numbers_name_sources_and_repetitions_are_left_out_and_counted(tmp_path):
    result = read_captions(written(tmp_path / "a.jsonl", {7: ["b", "a", "b "], 8: ["b"]}))
    path = tmp_path / "numbers.jsonl"
    path.write_text('{"source_id": 7, "captions": ["a"]}\n{"source_id": 8, "captions": ["b"]}\n')
    assert read_captions(path).sources == result.sources == ("7", "8")
    assert result.texts == ("b", "a", "b")
    assert (result.caption_indices.tolist(), result.in_file) == ([0, 1, 3], 4)
    (warning,) = result.warnings
    assert str(warning).endswith(": captions repeated within their source are skipped: 1 of 4")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "source_id,caption\nx,a\ny, \n,b\n", {3: "caption is empty", 4: "source_id is"}),
        ("a.csv", "source_id,caption\nx,a\nx,b\n", {None: "1 source"}),
        ("a.csv", "source_id,caption\n", {None: "0 source"}),
        (
            "a.csv",
            "source,caption\nx,a\n",
            {1: "no column source_id; existing columns are source, caption"},
        ),
        (
            "a.jsonl",
            '{"source_id": "x", "captions": ["a", ""]}\n{"source_id": "x", "captions": ["b"]}\n'
            '{"captions": ["b"]}\n{"source_id": "z", "captions": []}\n\n'
            '{"source_id": "u", "captions": "b"}\n{"source_id": true, "captions": [1]}\nno',
            {
                1: "the caption is empty",
                2: "repeats the source_id 'x' of line 1",
                3: "source_id is missing",
                4: "captions is []; expected a list of one or more strings",
                6: "captions is 'b'; expected a list of one or more strings",
                7: "source_id is true",
                8: "not a JSON object",
            },
        ),
        ("a.jsonl", '{"source_id": "x", "captions": ["a", "b"]}', {None: "1 source"}),
    ],
)
def test_every_fault_is_named_with_its_line(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        read_captions(path)
    result = {problem.line: problem.message for problem in reversed(caught.value.problems)}
    assert result.keys() == said.keys()
    for line, message in said.items():
        assert message in result[line]


# --- filters


def test_the_presets_are_table_6():
    assert (PRESETS["coco"].k, PRESETS["flickr30k"].k) == (64, 128)
    rows = [("iou_at_most", 0.12, 0.2), ("distance_at_least", 0.4, 0.4)]
    rows += [("ratio_at_least", 0.7, 0.7), ("length_at_least", 50, 48)]
    for name, coco, flickr in rows:
        assert getattr(PRESETS["coco"].thresholds, name) == coco
        assert getattr(PRESETS["flickr30k"].thresholds, name) == flickr
    assert {preset.thresholds.distance_at_most for preset in PRESETS.values()} == {2.0}


def measured(one, other, stop=("a", "the", "is", "do")):
    bags = bags_of([one, other], stop)
    first, second = np.array([0]), np.array([1])
    return ious(bags, first, second)[0], ratios(bags, first, second)[0]


@pytest.mark.parametrize(
    ("one", "other", "iou", "ratio"),
    [
        # {man, rides, horse} and {man, leads, horse}: 2 of 4; 5 words each
        ("A man rides a horse.", "The man leads the horse!", 2 / 4, 1),
        # a bag: dog twice and dog once share one; 3 + 2 - 1 = 4; 4 of 5 words
        ("a dog, dog BALL", "the dog is a cat", 1 / 4, 4 / 5),
        ("dog dog", "Dog, dog", 1, 1),
        # "man's" counts as one word and is man in the bag; "don't" is do, a stop word
        ("The man's well-known dog", "Don't dog man", 2 / 3, 3 / 4),
        ("the man’s 2 dogs", "the 2 men", 1 / 4, 3 / 4),
        ("Übung am See", "übung am see", 1, 1),
        ("a the", "is", math.nan, 1 / 2),
        ("a", "dog", 0, 1),
        ("!", "…", math.nan, math.nan),
        ("!", "dog", 0, 0),
    ],
)
def test_shared_words_and_ratio_by_hand(one, other, iou, ratio):
    assert measured(one, other) == pytest.approx((iou, ratio), nan_ok=True)
    assert measured(other, one) == pytest.approx((iou, ratio), nan_ok=True)


def test_a_pair_on_a_threshold_is_kept_and_one_beyond_it_is_not():
    coco = PRESETS["coco"].thresholds
    good = passes(
        coco, *(np.array([value]) for value in (50, 7 / 10, 3 / 25, 0.4))
    )  # shared 3 of 25
    assert good.all()
    beyond = passes(coco, *(np.array([value]) for value in (49, 6 / 9, 3 / 24, 0.399999)))
    undefined = passes(coco, *(np.array([value]) for value in (49, math.nan, math.nan, math.nan)))
    assert not beyond.any()
    assert not undefined.any()
    near = Thresholds(1, 0, 0, 0, distance_at_most=0.6)
    far = [passes(near, *(np.array([v]) for v in (1, 1, 0, d)))[3, 0] for d in (0, 0.6, 0.600001)]
    assert far == [True, True, False]


@pytest.mark.parametrize(
    "wrong", [{"iou_at_most": 1.1}, {"distance_at_least": -0.1}, {"ratio_at_least": math.nan}]
)
def test_thresholds_beyond_what_there_can_be_are_refused(wrong):
    right = {"iou_at_most": 0, "distance_at_least": 0, "ratio_at_least": 0, "length_at_least": 0}
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*; expected"):
        Thresholds(**(right | wrong))


def test_a_distance_that_no_pair_can_have_is_refused():
    with pytest.raises(ValueError, match=r"distance_at_least is 0.7, .* distance_at_most, 0.6"):
        Thresholds(1, 0.7, 0, 0, distance_at_most=0.6)


def test_distance_and_length_by_hand_also_at_the_threshold(tmp_path):
    captions = read_captions(written(tmp_path / "a.jsonl", {"x": ["four"], "y": ["fives", "ab"]}))
    # cosines 0.6 and 0: distances 0.4, which float32 alone would put at 0.39999998, and 1
    texts = units_of(np.array([[2.0, 0], [3, 4], [0, 1]]), "made")
    candidates = Candidates(
        captions, texts, bags_of(captions.texts, ()), np.array([0]), np.array([1])
    )
    (result,) = mine(candidates, Thresholds(1, 0.4, 0, 0), Tally())
    assert result.d_text.tolist() == [0.4, 1]
    assert result.length.tolist() == [4, 2]


def test_the_stop_words_are_spacys():
    pytest.importorskip("spacy")
    words = filters.english_stop_words()
    assert len(words) == 326  # as the docstring says
    assert {"two", "front", "side", "top", "the"} <= words


# --- neighbours


def brute_neighbours(units, k):
    return [
        sorted(
            (other for other in range(len(units)) if other != own),
            key=lambda other: (-sum(map(float.__mul__, units[own], units[other])), other),
        )[:k]
        for own in range(len(units))
    ]


@pytest.mark.parametrize("block_bytes", [1, 4 * 40 * 7, 2**20])
def test_neighbours_are_those_of_brute_force(monkeypatch, block_bytes):
    monkeypatch.setattr(neighbours, "BLOCK_BYTES", block_bytes)
    units = units_of(generator().normal(size=(40, 5)), "made")
    assert nearest(units, 6).tolist() == brute_neighbours(units.astype(float).tolist(), 6)


def test_ties_go_to_the_first_and_no_source_is_its_own_neighbour():
    # of each corner the two beside it are as near as each other, and twins are nearest of all
    corners = np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0], [1, 0]], np.float32)
    expected = [[4, 5, 1], [0, 2, 4], [1, 3, 0], [0, 2, 4], [0, 5, 1], [0, 4, 1]]
    assert nearest(corners, 3).tolist() == expected
    same = np.ones((5, 1), np.float32)
    assert nearest(same, 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]


def test_with_few_sources_all_others_are_neighbours():
    units = np.eye(3, dtype=np.float32)
    assert nearest(units, 64).tolist() == [[1, 2], [0, 2], [0, 1]]
    with pytest.raises(ValueError, match="k is 0; expected 1 or more"):
        nearest(units, 0)


def test_each_pair_of_sources_is_there_once_if_either_is_near_the_other():
    # 0 is near 1 and 1 near 0; 2 is near 0, which is not near 2
    first, second = source_pairs(np.array([[1], [0], [0]]))
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 1), (0, 2)]


# --- mining


def brute_words(text, stop):
    words = re.findall(r"\w+", text)
    return words, Counter(word for word in words if word not in stop)


def brute_pairs(candidates, thresholds):
    """Return {pair of captions: passed filters} of every pair of captions, by definition."""
    captions, texts = candidates.captions, candidates.texts.astype(float)
    owner = np.repeat(np.arange(len(captions.sources)), captions.counts).tolist()
    near = set(zip(candidates.first.tolist(), candidates.second.tolist(), strict=True))
    result = {}
    for a, b in combinations(range(len(owner)), 2):
        if (owner[a], owner[b]) not in near:
            continue
        (words, bag), (other_words, other) = (
            brute_words(captions.texts[place], {"a", "the", "in"}) for place in (a, b)
        )
        n, m = sorted([len(words), len(other_words)])
        shared = (bag & other).total() / (bag | other).total()
        result[a, b] = {
            "length": min(map(len, (captions.texts[a], captions.texts[b])))
            >= thresholds.length_at_least,
            "ratio": n / m >= thresholds.ratio_at_least,
            "iou": shared <= thresholds.iou_at_most,
            "d_text": 1 - texts[a] @ texts[b] >= thresholds.distance_at_least,
        }
    return result


@pytest.mark.parametrize(
    ("seed", "chunk"),
    others_nightly(itertools.product([0, 1, 2], [1, 10, 250_000]), (0, 10), (1, 250_000)),
)
def test_mined_pairs_and_counts_are_those_of_brute_force(tmp_path, monkeypatch, chunk, seed):
    monkeypatch.setattr(mining, "CHUNK", chunk)
    candidates = prepared(tmp_path, made(seed), seed=seed)
    thresholds = Thresholds(0.3, 0.5, 0.6, 14)
    brute, tally = brute_pairs(candidates, thresholds), Tally()
    result = joined(mine(candidates, thresholds, tally))
    texts = candidates.captions.texts
    good = [pair for pair, verdicts in brute.items() if all(verdicts.values())]
    distinct = {frozenset(texts[place] for place in pair) for pair in good}
    mined = list(zip(result.first.tolist(), result.second.tolist(), strict=True))
    assert {frozenset((texts[a], texts[b])) for a, b in mined} == distinct
    assert set(mined) <= set(good)
    assert len(mined) == len(distinct) == tally.passed > 0
    assert tally.candidates == len(brute)
    assert tally.repeated == len(good) - len(distinct)
    alone = {name: sum(not verdicts[name] for verdicts in brute.values()) for name in FILTERS}
    first = Counter(
        next((name for name in FILTERS if not verdicts[name]), "") for verdicts in brute.values()
    )
    assert tally.rejected_only_by == alone
    assert tally.in_order == {name: first[name] for name in FILTERS}
    assert all(tally.in_order.values())


def test_all_captions_of_near_sources_are_paired_and_repetitions_only_once(tmp_path):
    sources = {"x": ["p", "q"], "y": ["r", "p"], "z": ["p", "s"]}
    candidates, tally = prepared(tmp_path, sources, k=2), Tally()
    result = joined(mine(candidates, OPEN, tally))
    texts = candidates.captions.texts
    written = [texts[a] + texts[b] for a, b in zip(result.first, result.second, strict=True)]
    every = [
        one + other for m, n in (("x", "y"), ("x", "z"), ("y", "z"))
        for one, other in product(sources[m], sources[n])
    ]  # fmt: skip
    # pr pp qr qp, pp ps qp qs, rp rs pp ps: pp comes thrice, qp and ps twice, rp is pr; p and q share 0
    assert len(every) == 12
    assert sorted(written) == sorted(["pr", "pp", "qr", "qp", "ps", "qs", "rs"])
    assert (tally.candidates, tally.passed, tally.repeated) == (12, 7, 5)


def test_a_draw_is_of_the_pairs_in_their_order_whatever_the_chunks(tmp_path, monkeypatch):
    candidates = prepared(tmp_path, made())
    whole = joined(mine(candidates, OPEN, Tally()))
    places = {pair: n for n, pair in enumerate(zip(whole.first, whole.second, strict=True))}

    def draw(number, seed, parts):
        chunks = [whole.select(part) for part in np.array_split(np.arange(len(whole)), parts)]
        result = sampled(chunks, number, seed)
        return [places[pair] for pair in zip(result.first, result.second, strict=True)]

    few = draw(10, 0, 1)
    assert len(few) == 10
    assert few == sorted(set(few)) == draw(10, 0, 7) == draw(10, 0, len(whole))
    assert few != draw(10, 1, 1)
    assert draw(len(whole) + 1, 0, 3) == list(range(len(whole)))
    # each of the pairs as often as another: 2,000 draws of 10, mean 10 / M, five standard deviations
    times = Counter(place for seed in range(2000) for place in draw(10, seed, 2))
    share = 10 / len(whole)
    spread = math.sqrt(2000 * share * (1 - share))
    assert all(abs(times[place] - 2000 * share) < 5 * spread for place in range(len(whole)))
    with pytest.raises(ValueError, match="number is 0; expected 1 or more"):
        sampled([whole], 0)


def test_a_file_of_no_pairs_has_its_header(tmp_path):
    candidates = prepared(tmp_path, made())
    chunks = mine(candidates, Thresholds(1, 0, 0, 10_000), Tally())
    assert write_pairs(tmp_path / "none.csv", candidates, chunks) == 0
    (header,) = (tmp_path / "none.csv").read_text().splitlines()
    assert header == "sentence1,sentence2,source1,source2,iou,d_text,ratio,length"


# --- embeddings


def test_an_encoder_is_asked_for_each_text_once_and_baselines_make_none(static_encoder):
    texts = ["one", "two", "one", "three three"]
    result = encoded(open_model(f"encoder:{static_encoder}"), texts)
    from sentence_transformers import SentenceTransformer

    assert np.allclose(result, SentenceTransformer(str(static_encoder)).encode(texts), atol=1e-6)
    with pytest.raises(InputError, match="baseline:chance: makes no embeddings"):
        encoded(open_model("baseline:chance"), texts)


def test_a_source_is_the_mean_of_its_captions(tmp_path):
    captions = read_captions(written(tmp_path / "a.jsonl", {"x": ["a", "b", "c"], "y": ["d"]}))
    units = np.array([[1, 0], [0, 1], [-1, 0], [0.6, 0.8]], np.float32)
    assert source_means(units, captions).tolist() == pytest.approx(
        np.array([[0, 1 / 3], [0.6, 0.8]])
    )


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(3), "two-dimensional"),
        (np.ones((2, 4)), r"has the shape \(2, 4\); expected \(3, D\), one row per source"),
        (np.ones((3, 0)), "expected"),
        (np.array([["a"]] * 3), "not a single two-dimensional array"),
        (np.array([[{}]] * 3, dtype=object), "not an array of numbers"),
    ],
)  # fmt: skip
def test_arrays_of_another_kind_are_refused(tmp_path, array, message):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InputError, match=message):
        read_array(tmp_path / "a.npy", 3, "sources")


def test_what_is_no_array_and_what_has_no_direction_is_refused(tmp_path):
    (tmp_path / "a.npy").write_text("not an array")
    for name in ("a.npy", "b.npy"):
        with pytest.raises(InputError, match=name):
            read_array(tmp_path / name, 3, "sources")
    vectors = np.array([[1, 2], [0, 0], [math.inf, 0], [1e30, 1e30]])
    with pytest.raises(InputError) as caught:
        units_of(vectors, "e.npy", ["p", "q", "r", "s"])
    assert [str(problem).split(" is")[0] for problem in caught.value.problems] == [
        "e.npy: the embedding of q", "e.npy: the embedding of r"
    ]  # fmt: skip


# --- the command


def run(*arguments):
    return CliRunner().invoke(command, [*map(str, arguments)])


@pytest.fixture
def files(tmp_path):
    pytest.importorskip("spacy")
    sources = made(number=8)
    rows = [(name, text) for name, texts in sources.items() for text in texts]
    order = generator().permutation(len(rows)).tolist()
    table = tmp_path / "captions.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("source_id", "caption"), *(rows[place] for place in order)])
    rng = generator(5)
    np.save(tmp_path / "texts.npy", rng.normal(size=(len(rows), 6)))
    np.save(tmp_path / "sources.npy", rng.normal(size=(8, 6)))
    return tmp_path


def test_the_command_writes_what_the_arrays_say(files):
    output = files / "out.csv"
    arguments = [files / "captions.csv", "--caption-embeddings", files / "texts.npy"]
    arguments += ["--embeddings", files / "sources.npy", "--neighbours", 2, "-o", output, "--json"]
    arguments += ["--max-iou", 0.5, "--min-ratio", 0.2, "--min-length", 10]
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    thresholds = {"iou_at_most": 0.5, "distance_at_least": 0.4, "ratio_at_least": 0.2}
    assert facts["thresholds"].items() >= {**thresholds, "length_at_least": 10}.items()
    assert facts["k"] == 2
    rejected = sum(facts["in_order"].values())
    assert rejected + facts["repeated"] + facts["passed"] == facts["candidates"]

    rows = list(csv.DictReader(output.open(encoding="utf-8")))
    assert len(rows) == facts["written"] == facts["passed"] > 10
    given = list(csv.DictReader((files / "captions.csv").open(encoding="utf-8")))
    vectors, sources = np.load(files / "texts.npy"), np.load(files / "sources.npy")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sources /= np.linalg.norm(sources, axis=1, keepdims=True)
    place = {(row["source_id"], row["caption"]): n for n, row in enumerate(given)}
    number = {name: n for n, name in enumerate(dict.fromkeys(row["source_id"] for row in given))}
    near = brute_neighbours(sources.tolist(), 2)
    for row in rows:
        a, b = number[row["source1"]], number[row["source2"]]
        assert a < b
        assert b in near[a] or a in near[b]
        one, other = (place[row[f"source{n}"], row[f"sentence{n}"]] for n in (1, 2))
        assert float(row["d_text"]) == pytest.approx(1 - vectors[one] @ vectors[other], abs=2e-6)
        assert float(row["iou"]) <= 0.5
        assert int(row["length"]) == min(len(row["sentence1"]), len(row["sentence2"])) >= 10


def test_a_draw_has_its_seed_and_the_means_stand_for_missing_images(files):
    arguments = [files / "captions.csv", "--caption-embeddings", files / "texts.npy"]
    arguments += ["--min-length", 0, "--max-iou", 1, "--min-ratio", 0]
    said = []
    for seed in (0, 0, 1):
        done = run(*arguments, "--pairs", 5, "--seed", seed, "-o", files / "out.csv")
        assert "The embedding of a source is the mean" in done.stderr
        assert "5 written to" in done.stdout
        assert re.search(r"^7 neighbours per source$", done.stdout, re.MULTILINE)
        said.append((files / "out.csv").read_text("utf-8"))
        assert "were requested" not in done.stderr
    assert (
        "pairs exist; 9,999 were requested"
        in run(*arguments, "--pairs", 9999, "-o", files / "all.csv").stderr
    )
    assert said[0] == said[1] != said[2]
    assert all(len(text.splitlines()) == 6 for text in said)


def test_a_model_encodes_the_captions(files, static_encoder):
    output = files / "out.csv"
    arguments = ["--model", f"encoder:{static_encoder}", "--min-distance", 0, "-o", output]
    done = run(files / "captions.csv", *arguments, "--min-length", 0, "--max-iou", 1)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(output.open(encoding="utf-8")))
    texts = [[row[f"sentence{n}"] for row in rows] for n in (1, 2)]
    from giccs.progress import silent

    cosines = open_model(f"encoder:{static_encoder}").pair_scores(*texts, silent)
    assert [float(row["d_text"]) for row in rows] == pytest.approx(1 - cosines, abs=2e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either --model or --caption-embeddings"),
        (["--model", "x", "--caption-embeddings", "y"], "either --model or --caption-embeddings"),
        (["--model", "x", "--max-distance", "0.3"], "distance_at_least is 0.4, more than"),
        (["--model", "x", "-o", "-"], "-o must name a CSV file"),
        (["--caption-embeddings", "sources.npy"], "one row per caption"),
        (["--caption-embeddings", "texts.npy", "--embeddings", "texts.npy"], "one row per source"),
        (["--caption-embeddings", "zero.npy"], "the embedding of line 3 of captions.csv is zero"),
    ],
)
def test_wrong_calls_end_with_2_and_leave_no_file(files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    zero = np.load("texts.npy")
    zero[1] = 0
    np.save("zero.npy", zero)
    done = run("captions.csv", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (files / "pairs.csv").exists()


def test_the_command_takes_every_preset():
    (preset,) = (param for param in command.params if param.name == "preset")
    assert [*preset.type.choices] == [*PRESETS]
