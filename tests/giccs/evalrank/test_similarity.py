"""Word and sentence similarity: against SciPy and gensim, by hand, level by level."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bws.base.problems import InputError
from giccs.evaluation.run import run
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.progress import silent
from giccs.tasks import TaskOptions, open_tasks

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
PUBLISHED = SHARED / "data" / "evalrank"
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason=f"{PUBLISHED} is not there; set GICCS_SHARED"
)


class Dictionary:
    """Vectors by word, as written or in lower case, the mean of a text's; counts what it is asked.

    It stands for the static models, which do the same (and are tested against it below).
    """

    name, identity = "dictionary", {"kind": "dictionary"}

    def __init__(self, words):
        self.words = {word: np.asarray(vector, np.float32) for word, vector in words.items()}
        self.asked = []

    def vectors(self, texts, progress):
        self.asked += texts
        width = len(next(iter(self.words.values())))
        result = np.full((len(texts), width), np.nan, np.float32)
        for place, text in enumerate(texts):
            sought = (self.words.get(word, self.words.get(word.lower())) for word in text.split())
            if known := [vector for vector in sought if vector is not None]:
                result[place] = np.mean(known, axis=0)
        return result

    def environment(self):
        return {}


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return path


def task(name="word-similarity", **options):
    (result,) = open_tasks(name, TaskOptions(**options))
    return result


def asked(model, data, name="word-similarity", *, min_known_pairs=None, **options):
    one = task(name, **options)
    if min_known_pairs is not None:
        one = replace(one, min_known_pairs=min_known_pairs)
    return evaluate_task(one, model, one.read(str(data)))


def drawn(names, seed=0):
    rng = np.random.default_rng(seed)
    return Dictionary({name: rng.normal(size=5) for name in names})


@pytest.fixture(scope="module")
def toy():
    """The 5,000 words of 50 dimensions that are published with EvalRank."""
    if not PUBLISHED.is_dir():
        pytest.skip(f"{PUBLISHED} is not there; set GICCS_SHARED")
    lines = (PUBLISHED / "toy_emb.txt").read_text("utf-8").splitlines()
    return Dictionary({word: vector for word, *vector in (line.split(" ") for line in lines)})


@pytest.mark.parametrize("similarity", ["cos", "l2"])
def test_a_set_agrees_with_scipy(tmp_path, similarity):
    model = drawn("abcdefgh")
    pairs = [(a, b) for a in "abcdefgh" for b in "abcdefgh" if a < b]
    scores = np.round(np.random.default_rng(1).uniform(0, 3, len(pairs)))  # with ties
    data = write(
        tmp_path / "set.txt", *(f"{a} {b} {s}" for (a, b), s in zip(pairs, scores, strict=True))
    )
    result = asked(model, data, similarity=similarity)
    a, b = (np.array([model.words[pair[side]] for pair in pairs], np.float64) for side in (0, 1))
    by_hand = {
        "cos": np.sum(a * b, 1) / np.sqrt(np.sum(a * a, 1) * np.sum(b * b, 1)),
        "l2": 1 / (1 + np.sqrt(np.sum((a - b) ** 2, 1))),
    }[similarity]
    np.testing.assert_allclose(result.predictions["prediction"], by_hand, rtol=1e-12)
    assert result.metrics["spearman"].value == pytest.approx(
        stats.spearmanr(by_hand, scores)[0], abs=1e-12
    )
    assert result.metrics["pearson"].value == pytest.approx(
        stats.pearsonr(by_hand, scores)[0], abs=1e-12
    )
    assert result.metrics["spearman"].n == 28
    assert not result.groups
    assert result.signature["setting"] == similarity
    assert len(model.asked) == 8  # each text once


def test_sets_are_groups_and_their_mean_is_the_tasks_number(tmp_path):
    model = drawn("abcdef")
    write(tmp_path / "sets" / "one.txt", "a b 3", "a c 2", "b d 1", "e f 2")
    write(tmp_path / "sets" / "two.txt", "a d 3", "c f 1", "b c 2", "a b 5", "d e 4")
    result = asked(model, tmp_path / "sets", min_known_pairs=0)
    assert [dict(group.by) for group in result.groups] == [{"set": "one"}, {"set": "two"}]
    values = [group.metrics["spearman"].value for group in result.groups]
    frame = result.predictions
    for value, name in zip(values, ("one", "two"), strict=True):
        rows = frame.filter(frame["set"] == name)
        assert value == pytest.approx(
            stats.spearmanr(rows["prediction"], rows["score"])[0], abs=1e-12
        )
    assert result.metrics["spearman"].value == pytest.approx(np.mean(values), abs=1e-12)
    assert result.metrics["spearman"].n == 2
    estimate = result.metrics["pearson"]
    assert estimate.low < estimate.value < estimate.high


def test_unknown_words_are_left_out_and_counted(tmp_path):
    rows = ["Rome rome 5", "a rome 1", "a b 3", "b c 2", "a c 4", "a unknown 9", "zero b 7"]
    words = drawn(["a", "b", "c", "rome"]).words
    model = Dictionary({**words, "zero": np.zeros(5)})
    data = write(tmp_path / "set.txt", *rows)
    result = asked(model, data)
    estimate = result.metrics["spearman"]
    assert (estimate.n, estimate.extra["left_out"]) == (5, 2)
    assert estimate.reason == "2 pairs excluded: the model has no vector for a text"
    found = result.predictions["prediction"].to_list()
    assert found[0] == pytest.approx(1)  # Rome is known as rome
    assert [math.isnan(one) for one in found] == [False] * 5 + [True] * 2
    by_distance = asked(model, data, similarity="l2")
    assert by_distance.metrics["spearman"].n == 6  # zero has a distance, and no direction


def test_a_set_without_known_pairs_says_so_and_the_mean_leaves_it_out(tmp_path):
    model = drawn("abc")
    write(tmp_path / "sets" / "known.txt", "a b 3", "b c 2", "a c 1")
    write(tmp_path / "sets" / "strange.txt", "x y 3", "a z 2")
    result = asked(model, tmp_path / "sets", min_known_pairs=0)
    known, strange = (group.metrics["spearman"] for group in result.groups)
    assert math.isnan(strange.value)
    assert strange.reason == (
        "0 pairs; a correlation requires two; 2 pairs excluded: the model has no vector for a text"
    )
    mean = result.metrics["spearman"]
    assert (mean.value, mean.n) == (pytest.approx(known.value), 1)
    assert mean.reason.startswith("1 sets without a correlation excluded")
    assert Store(tmp_path / "results").add(result).is_file()


def test_the_mean_leaves_out_sets_with_fewer_than_200_known_pairs(tmp_path):
    names = [f"w{n}" for n in range(30)]
    model = drawn(names)
    pairs = [(a, b) for a in names for b in names if a < b]  # 435
    rng = np.random.default_rng(2)

    def rated(name, n, *more):
        rows = [f"{a} {b} {rng.integers(0, 9)}" for a, b in pairs[:n]]
        write(tmp_path / "sets" / f"{name}.txt", *rows, *more)

    rated("large", 300)
    rated("enough", 200, "x y 3")
    rated("known", 199, "w1 unknown 3")  # 200 rows, of which the model knows 199
    rated("small", 20)
    result = asked(model, tmp_path / "sets")
    of_set = {group.by["set"]: group.metrics["spearman"] for group in result.groups}
    assert {name: one.n for name, one in of_set.items()} == {
        "enough": 200, "known": 199, "large": 300, "small": 20,
    }  # fmt: skip
    mean = result.metrics["spearman"]
    assert mean.value == pytest.approx((of_set["large"].value + of_set["enough"].value) / 2)
    assert (mean.n, mean.extra["left_out"]) == (2, 1)
    assert mean.reason == (
        "2 of 4 sets excluded from the mean (fewer than 200 known pairs): known, small; "
        "1 pairs excluded: the model has no vector for a text"
    )
    assert result.signature["mean"] == "sets of at least 200 known pairs"
    stranger = drawn(names[:3])
    stranger.identity = {"kind": "dictionary", "words": 3}
    few = asked(stranger, tmp_path / "sets").metrics["spearman"]
    assert math.isnan(few.value)
    assert "4 of 4 sets excluded from the mean (fewer than 200 known pairs)" in few.reason
    alone = asked(model, tmp_path / "sets" / "small.txt")
    assert alone.metrics["spearman"].n == 20  # a single set is no mean
    assert "mean" not in alone.signature


def test_sets_on_one_scale_have_a_correlation_over_all_their_pairs(tmp_path):
    model, rng = drawn([f"w{n}" for n in range(40)]), np.random.default_rng(3)
    for name, n in (("MSRvid", 30), ("headlines", 20)):
        write(tmp_path / f"STS.input.{name}.txt", *(f"w{i}\tw{i + 7}" for i in range(n)))
        write(tmp_path / f"STS.gs.{name}.txt", *np.round(rng.uniform(0, 5, n), 2))
    result = asked(model, tmp_path, "sentence-similarity")
    (pooled,) = [group for group in result.groups if dict(group.by) == {"pairs": "all"}]
    frame = result.predictions
    for name, function in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        assert pooled.metrics[name].n == 50
        expected = function(frame["prediction"], frame["score"])[0]
        assert pooled.metrics[name].value == pytest.approx(expected, abs=1e-12)
        sets = [group.metrics[name].value for group in result.groups if tuple(group.by) == ("set",)]
        assert result.metrics[name].value == pytest.approx(np.mean(sets), abs=1e-12)
    assert result.metrics["spearman"].value != pytest.approx(pooled.metrics["spearman"].value)
    assert result.signature["pooled"] == "all pairs"
    write(tmp_path / "mixed" / "a.csv", "text1,text2,score", "w1,w2,4.5", "w2,w3,1", "w1,w3,2")
    write(tmp_path / "mixed" / "b.csv", "text1,text2,score", "w1,w2,9", "w2,w3,1", "w1,w3,2")
    mixed = asked(model, tmp_path / "mixed", "sentence-similarity")
    assert not any("pairs" in group.by for group in mixed.groups)


def test_levels_overlap_and_are_on_zero_to_five(tmp_path):
    model = drawn([f"w{n}" for n in range(40)])
    scores = [5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5, 1, 0.5, 0]
    rows = [f"m\tf\ty\t{n}\t{score}\tw{n}\tw{n + 1}" for n, score in enumerate(scores)]
    result = asked(model, write(tmp_path / "sts-dev.csv", *rows), "sentence-similarity")
    levels = {group.by["level"]: group.metrics["spearman"].n for group in result.groups}
    assert levels == {"[5, 3]": 5, "[4, 2]": 5, "[3, 1]": 5, "[2, 0]": 5}
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    rows = [f"{n}\tw{n}\tw{n + 1}\t{1 + n / 5:.1f}\tNEUTRAL" for n in range(21)]  # 1.0 to 5.0
    one = task("sentence-similarity")
    data = one.read(str(write(tmp_path / "SICK_trial.txt", header, *rows)))
    result = evaluate_task(one, model, data)
    levels = {group.by["level"]: group.metrics["spearman"].n for group in result.groups}
    assert levels == {"[5, 3]": 9, "[4, 2]": 9, "[3, 1]": 9, "[2, 0]": 9}  # 3 is 3.4, 1 is 1.8
    top = result.predictions.filter(result.predictions["score"] >= 3.4)
    expected = stats.spearmanr(top["prediction"], top["score"])[0]
    assert result.groups[0].metrics["spearman"].value == pytest.approx(expected, abs=1e-12)


def test_a_scale_that_the_file_does_not_tell(tmp_path):
    one = task("sentence-similarity")
    five = one.read(
        str(write(tmp_path / "five.csv", "text1,text2,score", "a,b,4.5", "b,c,1", "a,c,0"))
    )
    assert [warning.message for warning in five.warnings] == [
        "five: the scale is assumed to be 0 to 5"
    ]
    assert {group.by["level"] for group in evaluate_task(one, drawn("abc"), five).groups} == {
        "[5, 3]", "[4, 2]", "[3, 1]", "[2, 0]",
    }  # fmt: skip
    ten = one.read(
        str(write(tmp_path / "ten.csv", "text1,text2,score", "a,b,9.5", "b,c,1", "a,c,0"))
    )
    assert "the scale is unknown; levels are omitted" in ten.warnings[0].message
    assert evaluate_task(one, drawn("abc"), ten).groups == ()


def test_models_that_only_compare_and_models_that_cannot(tmp_path):
    model = open_model("baseline:char-ngram")
    data = write(
        tmp_path / "set.txt", "sonne sonnig 3", "sonne regen 1", "regen regnen 2", "eis see 0"
    )
    cosine, distance = task(), task(similarity="l2")
    assert cosine.refuses(model) == ""
    result = evaluate_task(cosine, model, cosine.read(str(data)))
    expected = model.pair_scores(
        ["sonne", "sonne", "regen", "eis"], ["sonnig", "regen", "regnen", "see"], silent
    )
    assert result.predictions["prediction"].to_list() == pytest.approx(list(expected))
    assert result.signature["setting"] == "own"
    assert distance.refuses(model).startswith(
        "has no vectors; word-similarity requires them for l2"
    )

    class Causal:
        name = "causal:gpt"

    assert task("sentence-similarity").refuses(Causal()).startswith("does not compare texts; ")
    with pytest.raises(
        InputError, match="cos-centred: unsupported by word-similarity; expected cos"
    ):
        task(similarity="cos-centred")


def test_results_are_kept_and_depend_on_what_is_asked(tmp_path):
    data = write(tmp_path / "set.txt", "a b 3", "b c 2", "a c 1", "a d 0", "b d 4", "c e 5")
    one, other = task(), task(similarity="l2")
    read = one.read(str(data))
    assert one.read == other.read
    model, store = drawn("abcde"), Store(tmp_path / "results")
    first = list(run([model], [one, other], read, store))
    asked_before = len(model.asked)
    again = list(run([model], [one, other], read, store))
    assert len(model.asked) == asked_before
    assert [result.metrics["spearman"] for result in again] == [
        result.metrics["spearman"] for result in first
    ]
    signatures = [
        signature_of(one, model, read),
        signature_of(other, model, read),
        signature_of(one, model, read.first(3)),
    ]
    assert len({str(signature) for signature in signatures}) == 3


@needs_published
def test_every_published_set_agrees_with_gensim(toy, tmp_path):
    keyedvectors = pytest.importorskip("gensim.models").KeyedVectors
    vectors = keyedvectors(vector_size=50)
    vectors.add_vectors(list(toy.words), np.stack(list(toy.words.values())))
    one = task()
    data = one.read(str(PUBLISHED / "word_similarity"))
    result = evaluate_task(one, toy, data)
    assert len(result.groups) == 13
    for group, of in zip(result.groups, data.sets, strict=True):
        path = write(tmp_path / "set.tsv", *("\t".join(map(str, pair)) for pair in of.pairs))
        pearson, spearman, unknown = vectors.evaluate_word_pairs(str(path), case_insensitive=True)
        found = group.metrics["spearman"]
        assert found.value == pytest.approx(spearman[0], abs=1e-6)  # gensim computes in float32
        assert group.metrics["pearson"].value == pytest.approx(pearson[0], abs=1e-5)
        assert found.extra["left_out"] / len(of.pairs) == pytest.approx(unknown / 100)


@needs_published
def test_word_vectors_in_a_file_are_a_model(toy):
    model = open_model(f"static:{PUBLISHED / 'toy_emb.txt'}")
    for similarity in ("cos", "l2"):
        place = PUBLISHED / "word_similarity"
        theirs, ours = (asked(one, place, similarity=similarity) for one in (model, toy))
        for one, other in zip(theirs.groups, ours.groups, strict=True):
            assert one.metrics["spearman"].value == pytest.approx(
                other.metrics["spearman"].value, abs=1e-9
            )
            assert one.metrics["spearman"].n == other.metrics["spearman"].n


@needs_published
@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("STS/STSBenchmark", (0.3876, 0.1533, 0.1429, 0.1862, 0.2442)),
        ("SICK", (0.4806, 0.2416, 0.2056, 0.2696, 0.4115)),
    ],
)
def test_published_sentences_by_level(place, values):
    toy = open_model(f"static:{PUBLISHED / 'toy_emb.txt'}")
    result = asked(toy, PUBLISHED / "sent_similarity" / place, "sentence-similarity")
    frame = result.predictions.filter(result.predictions["prediction"].is_not_nan())
    assert result.metrics["spearman"].value == pytest.approx(
        stats.spearmanr(frame["prediction"], frame["score"])[0], abs=1e-12
    )
    found = (result.metrics, *(group.metrics for group in result.groups))
    assert [round(one["spearman"].value, 4) for one in found] == list(values)
