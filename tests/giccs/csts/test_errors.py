"""Error identification: planted errors are found, the numbers are scikit-learn's, edges have reasons."""

import csv
import io
import json
import math
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import spearmanr

from bws.base.problems import InputError
from giccs.csts.cli.errors import errors
from giccs.csts.errors.answers import AnswerPair, Vectors, read_answers, with_truth
from giccs.csts.errors.detection import (
    assigned,
    distinct,
    find_suspects,
    predefined,
    rank_labels,
    similarities,
    suspects_csv,
    topics,
)
from giccs.csts.errors.evaluation import (
    PUBLISHED_CORRELATIONS,
    all_called_errors,
    evaluate,
    halves,
    measured,
    truth_correlations,
)
from tests.nightly import others_nightly

ROOT = Path(__file__).parents[3]
DIMENSIONS = 48
TOPICS = 5
SHARES = (0.36, 0.10, 0.12, 0.10, 0.32)
"""Of the true labels: more extreme ones than others, as in the paper's Figure 3."""


def planted(seed, n=600, error_rate=0.55, noise=0.06):
    """Answer pairs of five topics whose similarity says the label; a share of labels is then replaced.

    The answers of a topic lie around its direction, more closely in one topic than in another: the same
    cosine means another label there, which only ranking inside the topic sees.
    """
    draw = np.random.default_rng(seed)
    topic = draw.integers(TOPICS, size=n)
    truth = draw.choice(5, size=n, p=SHARES) + 1
    basis = np.linalg.qr(draw.normal(size=(DIMENSIONS, DIMENSIONS)))[0]
    pull = np.linspace(1.0, 3.0, TOPICS)[topic][:, None]
    own, other = (unit(draw.normal(size=(n, DIMENSIONS))) for _ in range(2))
    rho = ((truth - 3) / 2 * 0.9 + noise * draw.normal(size=n))[:, None]
    first = pull * basis[topic] + own
    second = pull * basis[topic] + rho * own + np.sqrt(np.clip(1 - rho**2, 0, 1)) * other
    wrong = draw.random(n) < error_rate
    label = np.where(wrong, (truth - 1 + draw.integers(1, 5, size=n)) % 5 + 1, truth)
    assert np.array_equal(label != truth, wrong)
    return Vectors(first, second, first + second), label, truth, topic


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def pairs_of(label):
    return [AnswerPair(str(n), int(one), f"answer {n}", "other") for n, one in enumerate(label)]


# planted errors


@pytest.mark.parametrize("seed", others_nightly(range(5), 0))
def test_planted_errors_are_found_far_above_the_all_error_baseline(seed):
    vectors, label, truth, _ = planted(seed)
    result = evaluate(vectors, label, truth, range(1, 9), seed=seed, resamples=200)
    best = result.outcomes["reannotated"]
    assert result.all_errors["f1"].value == pytest.approx(0.71, abs=0.05)
    assert best.clustered["f1"].value > result.all_errors["f1"].value + 0.15
    assert best.clustered["f1"].low > result.all_errors["f1"].high
    assert best.clustered["mcc"].value > 0.6
    assert best.k >= TOPICS - 1
    assert best.clustered["f1"].value > best.not_clustered["f1"].value + 0.03


@pytest.mark.parametrize("seed", others_nightly(range(5), 0))
def test_rare_errors_are_found_too(seed):
    vectors, label, truth, _ = planted(seed, error_rate=0.15)
    result = evaluate(vectors, label, truth, [1, TOPICS], seed=seed, resamples=0)
    assert result.all_errors["f1"].value < 0.35
    for name in (
        "reannotated",
        "original",
    ):  # few errors: the annotated labels are spread as the true ones
        assert result.outcomes[name].clustered["f1"].value > result.all_errors["f1"].value + 0.2
    assert (
        result.outcomes["even"].clustered["f1"].value
        < result.outcomes["reannotated"].clustered["f1"].value
    )


def test_similarities_without_information_find_nothing():
    vectors, _, truth, _ = planted(0)
    draw = np.random.default_rng(1)
    label = np.where(draw.random(len(truth)) < 0.5, draw.integers(1, 6, size=len(truth)), truth)
    shuffled = vectors.rows(draw.permutation(len(truth)))
    result = evaluate(shuffled, label, truth, [TOPICS])
    mcc = result.outcomes["reannotated"].clustered["mcc"]
    assert mcc.low < 0.05
    assert mcc.value < 0.2


def test_same_seed_same_everything_and_the_seed_matters():
    vectors, label, truth, _ = planted(0, n=200)
    runs = [
        evaluate(vectors, label, truth, [1, 3, 5], seed=seed, resamples=50) for seed in (4, 4, 5)
    ]
    first, again, other = (json.dumps(run.document()) for run in runs)
    assert first == again
    assert first != other


def test_the_evaluation_half_decides_nothing():
    vectors, label, truth, _ = planted(2, n=200)
    _, test = halves(200, seed=0)
    changed = label.copy()
    changed[test] = changed[test] % 5 + 1
    one, two = (
        evaluate(vectors, labels, truth, range(1, 7), seed=0, resamples=0)
        for labels in (label, changed)
    )
    for name in one.outcomes:
        assert one.outcomes[name].k == two.outcomes[name].k
        assert [dict(p.training) for p in one.curve] == [dict(p.training) for p in two.curve]
    assert one.outcomes["even"].clustered["f1"] != two.outcomes["even"].clustered["f1"]


def test_k_is_the_best_of_the_training_half_and_the_papers_that_of_the_other():
    vectors, label, truth, _ = planted(1, n=240)
    result = evaluate(vectors, label, truth, range(2, 8), resamples=0)
    for name, outcome in result.outcomes.items():
        points = [point for point in result.curve if point.distribution == name]
        assert [point.k for point in points] == [2, 3, 4, 5, 6, 7]
        training = {point.k: point.training["f1"] for point in points}
        evaluation = {point.k: point.evaluation["f1"] for point in points}
        assert training[outcome.k] == max(training.values())
        assert evaluation[outcome.paper_k] == max(evaluation.values()) == outcome.paper_f1
        assert outcome.clustered["f1"].value == evaluation[outcome.k]


# the numbers are scikit-learn's


@pytest.mark.parametrize("seed", others_nightly(range(20), 0, 1))
def test_measures_are_those_of_scikit_learn_and_scipy(seed):
    from scipy.stats import spearmanr
    from sklearn.metrics import matthews_corrcoef, precision_recall_fscore_support

    draw = np.random.default_rng(seed)
    label, ranked, truth = draw.integers(1, 6, size=(3, int(draw.integers(8, 200))))
    result = measured(label, ranked, truth, resamples=0)
    precision, recall, f1, _ = precision_recall_fscore_support(
        label != truth, label != ranked, average="binary", zero_division=np.nan
    )
    mcc = matthews_corrcoef(label != truth, label != ranked)
    oracle = dict(precision=precision, recall=recall, f1=f1, mcc=mcc)  # noqa: C408
    oracle["spearman"] = spearmanr(ranked, truth).statistic
    for name, value in oracle.items():
        if np.isnan(result[name].value):
            assert result[name].reason
            assert name != "mcc" or value == 0  # scikit-learn calls a correlation of a constant 0
        else:
            assert result[name].value == pytest.approx(value, abs=1e-12)


def test_baseline_is_that_of_scikit_learn():
    from sklearn.metrics import f1_score

    label = np.ones(200, dtype=int)
    truth = np.repeat([2, 1], [110, 90])
    result = all_called_errors(label, truth)
    assert result["f1"].value == pytest.approx(f1_score(label != truth, np.ones(200)))
    assert result["f1"].value == pytest.approx(2 * 0.55 / 1.55)
    assert result["precision"].value == 0.55
    assert result["recall"].value == 1
    assert math.isnan(result["mcc"].value)
    assert result["mcc"].reason == "all or none are errors, or all or none are suspicious"


def test_intervals_are_those_of_a_bootstrap_over_instances():
    draw = np.random.default_rng(0)
    label, ranked, truth = draw.integers(1, 4, size=(3, 150))
    result = measured(label, ranked, truth, resamples=4000, seed=1)
    plain = {"f1": [], "spearman": []}
    for _ in range(1500):
        rows = draw.integers(150, size=150)
        one = measured(label[rows], ranked[rows], truth[rows], resamples=0)
        for name, values in plain.items():
            values.append(one[name].value)
    for name, values in plain.items():
        low, high = np.quantile(values, [0.025, 0.975])
        assert result[name].low == pytest.approx(low, abs=0.02)
        assert result[name].high == pytest.approx(high, abs=0.02)


def test_clusters_are_those_of_scikit_learn():
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    vectors, _, _, topic = planted(0)
    clusters = topics(vectors.joint, TOPICS, seed=7)
    peer = KMeans(TOPICS, init="k-means++", n_init=10, random_state=7).fit(unit(vectors.joint))
    assert isinstance(clusters, KMeans)
    assert np.array_equal(assigned(clusters, vectors.joint), peer.labels_)
    assert adjusted_rand_score(topic, peer.labels_) > 0.9


# ranks become labels


def test_even_distribution_gives_a_fifth_of_each_cluster_to_each_label():
    draw = np.random.default_rng(0)
    similarity, cluster = draw.random(130), np.repeat([0, 1, 2], [20, 100, 10])
    labels = rank_labels(similarity, cluster, np.ones(5, int))
    for one, each in ((0, 4), (1, 20), (2, 2)):
        inside = cluster == one
        assert np.bincount(labels[inside], minlength=6).tolist() == [0, *[each] * 5]
        order = np.argsort(similarity[inside])
        assert (np.diff(labels[inside][order]) >= 0).all()


def test_a_distribution_over_as_many_pairs_is_met_exactly():
    draw = np.random.default_rng(1)
    for _ in range(50):
        counts = draw.multinomial(60, draw.dirichlet(np.ones(5)))
        labels = rank_labels(draw.random(60), np.zeros(60, int), counts)
        assert np.bincount(labels, minlength=6)[1:].tolist() == counts.tolist()


def test_ties_share_a_label_whatever_their_order():
    similarity = np.array([0.2, 0.9, 0.9, 0.9, 0.9 + 1e-9])
    one = np.zeros(5, int)
    # ranks 1, 3.5 four times: (2·3.5 - 1) / 10 = 0.6 of the way, which label 3 of an even one reaches
    assert rank_labels(similarity, one, np.ones(5, int)).tolist() == [1, 3, 3, 3, 3]


def test_the_reannotated_distribution_is_that_of_the_known_labels():
    label, truth = np.array([3, 3, 2]), np.array([0, 5, 5])
    counts = [
        predefined(name, label, truth).tolist() for name in ("even", "original", "reannotated")
    ]
    assert counts == [[1, 1, 1, 1, 1], [0, 1, 2, 0, 0], [0, 0, 0, 0, 2]]
    with pytest.raises(ValueError, match="reannotated distribution requires labels"):
        predefined("reannotated", label, np.zeros(3, int))


# degenerate cases


def test_all_answers_the_same():
    same = np.ones((40, 8))
    vectors = Vectors(same, same, same)
    label, truth = np.tile([1, 2, 3, 4, 5], 8), np.tile([1, 1, 3, 5, 5], 8)
    result = evaluate(vectors, label, truth, range(1, 21))
    assert result.ks_left_out == tuple(range(2, 21))
    outcome = result.outcomes["reannotated"]
    assert outcome.k == 1
    assert math.isnan(outcome.clustered["spearman"].value)
    assert "are constant" in outcome.clustered["spearman"].reason
    ranked = find_suspects(pairs_of(label), vectors, 1, "even").rank_labels
    assert set(ranked.tolist()) == {3}  # all share the middle rank
    with pytest.raises(ValueError, match="the training half has 1 distinct answer pairs"):
        evaluate(vectors, label, truth, [2, 3])


def test_no_errors_is_nan_with_a_reason():
    vectors, _, truth, _ = planted(0, n=100)
    result = evaluate(vectors, truth, truth, [1, 2])
    clustered = result.outcomes["even"].clustered
    for name in ("recall", "f1", "mcc"):
        assert math.isnan(clustered[name].value)
        assert clustered[name].reason
    assert clustered["recall"].reason == "there are no errors"
    assert result.all_errors["f1"].reason == "there are no errors"
    assert result.error_rate.value == 0
    assert result.outcomes["even"].k == 1


def test_nothing_suspicious_is_nan_with_a_reason():
    label, truth = np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5])
    result = measured(label, label, truth)
    assert math.isnan(result["precision"].value)
    assert result["precision"].reason == "no label is suspicious"
    assert result["recall"].value == result["f1"].value == 0


def test_no_warning_reaches_the_user_where_k_is_the_number_of_distinct_pairs():
    both = np.repeat(np.eye(4), 5, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(set(assigned(topics(both, 4, 0), both).tolist())) == 4
    assert distinct(both) == 4
    with pytest.raises(ValueError, match="k is 5; expected 1 to 4"):
        topics(both, 5, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v, label, t: (v, label[1:], t, [1]), "expected one of each per instance"),
        (lambda v, label, t: (v, label + 3, t, [1]), "label .* is out of range"),
        (lambda v, label, t: (v, label, t * 0, [1]), "truth 0 is out of range; expected 1 to 5"),
        (lambda v, label, t: (v, label, t, [0, 2]), "expected integers from 1"),
        (
            lambda v, label, t: (v.rows(np.arange(3)), label[:3], t[:3], [1]),
            "expected at least 4",
        ),
    ],
)
def test_bad_arguments_are_named(change, message):
    vectors, label, truth, _ = planted(0, n=40)
    with pytest.raises(ValueError, match=message):
        evaluate(*change(vectors, label, truth))


def test_vectors_without_direction_are_refused():
    good = np.eye(3)
    with pytest.raises(ValueError, match=r"second\[1\] is zero or not finite"):
        Vectors(good, np.diag([1.0, 0.0, 1.0]), good)
    with pytest.raises(ValueError, match="three equal"):
        Vectors(good, good[:2], good)


# what is suspicious, and why


def test_suspects_say_their_reasons():
    vectors, label, truth, _ = planted(0, n=300, error_rate=0.2)
    result = find_suspects(pairs_of(label), vectors, TOPICS, "reannotated", truth=truth, seed=1)
    rows = [int(suspect.pair.uid) for suspect in result.suspects]
    assert sorted(rows) == np.flatnonzero(result.rank_labels != label).tolist()
    assert [suspect.gap for suspect in result.suspects] == sorted(
        (s.gap for s in result.suspects), reverse=True
    )
    cluster = assigned(topics(vectors.joint, TOPICS, 1), vectors.joint)
    directions = unit(vectors.joint)
    for one, row in zip(result.suspects, rows, strict=True):
        assert one.cluster == cluster[row]
        assert one.rank_label == result.rank_labels[row] != one.pair.label
        assert one.truth == truth[row]
        assert one.similarity == pytest.approx(
            float(unit(vectors.first)[row] @ unit(vectors.second)[row])
        )
        inside = np.flatnonzero(cluster == cluster[row])
        alike = similarities(vectors.first, vectors.second)[inside]
        assert one.rank == 1 + np.count_nonzero(alike < one.similarity - 1e-6)
        others = inside[inside != row]
        closest = others[np.argsort(-(directions[others] @ directions[row]))][:3]
        assert [int(pair.uid) for pair in one.neighbours] == closest.tolist()
        assert f"of {len(inside)} by similarity in cluster {one.cluster}" in one.reason
    assert sum(cluster.pairs for cluster in result.clusters) == 300
    assert sum(cluster.suspicious for cluster in result.clusters) == len(result.suspects)


def test_an_instance_alone_in_its_cluster_has_no_neighbours():
    both = np.array([[1.0, 0], [0.99, 0.01], [0, 1.0]])
    label = np.array([1, 5, 1])
    result = find_suspects(pairs_of(label), Vectors(both, both, both), 2, "even")
    alone = next(suspect for suspect in result.suspects if suspect.pair.uid == "2")
    assert alone.neighbours == ()
    assert (alone.rank, alone.size, alone.rank_label) == (1, 1, 3)


def test_an_unknown_distribution_is_named():
    vectors, label, _, _ = planted(0, n=20)
    with pytest.raises(ValueError, match="'zipf'; expected one of even, original, reannotated"):
        find_suspects(pairs_of(label), vectors, 1, "zipf")


# files


def write(path, text):
    path.write_text(text, "utf-8")
    return str(path)


def test_answers_are_read_with_all_their_problems(tmp_path):
    good = "answer2\tuid\tlabel\tanswer1\tnote\n two  dogs\t7\t5.0\ta dog\tx\n"
    (pair,) = read_answers(write(tmp_path / "good.tsv", good))
    assert pair == AnswerPair("7", 5, "a dog", "two dogs", "", 2)
    bad = "uid,label,answer1,answer2\n1,3,red,\n1,6,red,blue\n,2,a,b\n4,-1,a\n"
    with pytest.raises(InputError) as error:
        read_answers(write(tmp_path / "bad.csv", bad))
    assert sorted(str(problem).partition(".csv:")[2] for problem in error.value.problems) == [
        "2: answer2 is empty; expected text",
        "3: label is '6'; it must be 1, 2, 3, 4 or 5",
        "3: repeats the uid '1' of line 2; each must be unique",
        "4: uid is empty; expected text",
        "5: 3 fields; expected 4, as in the first row",
    ]
    with pytest.raises(
        InputError, match="no column answer2; existing columns are uid, label, answer1"
    ):
        read_answers(write(tmp_path / "short.csv", "uid,label,answer1\n1,2,a\n"))
    with pytest.raises(InputError, match="no rows"):
        read_answers(write(tmp_path / "none.csv", "uid,label,answer1,answer2\n"))


def test_truth_is_joined_by_uid_and_nothing_is_lost_silently():
    pairs = [AnswerPair(uid, 1, "a", "b") for uid in "abcd"]
    several = [replace(pair, uid=f"validation:{pair.uid}") for pair in pairs]
    again = with_truth(several, {"d": 5, "b": -1, "a": 2, "z": 1})
    result = with_truth(pairs, {"d": 5, "b": -1, "a": 2, "z": 1})
    assert again.truth.tolist() == result.truth.tolist()
    assert (again.invalid, again.unused) == (result.invalid, result.unused)
    assert [pair.uid for pair in result.pairs] == ["a", "c", "d"]
    assert result.truth.tolist() == [2, 0, 5]
    assert result.known_rows.tolist() == [0, 2]
    assert (result.invalid, result.unused) == (1, 1)


def test_suspicious_instances_as_csv_keep_every_character():
    label = np.array([1, 5, 1])
    pairs = [
        AnswerPair(str(n), int(one), '=1+"2"', "a,\nb", "the cat") for n, one in enumerate(label)
    ]
    both = np.array([[1.0, 0], [0.99, 0.01], [0, 1.0]])
    result = find_suspects(pairs, Vectors(both, both, both), 1, "even")
    rows = list(csv.DictReader(io.StringIO(suspects_csv(result.suspects))))
    assert len(rows) == len(result.suspects) > 0
    for row, one in zip(rows, result.suspects, strict=True):
        assert (row["answer1"], row["answer2"]) == ('=1+"2"', "a,\nb")
        assert row["reason"] == one.reason
        assert row["neighbours"] == ";".join(f"{p.uid}={p.label}" for p in one.neighbours)
        assert row["truth"] == ""


# the command

COLOURS = [
    "red",
    "dark red",
    "blue",
    "light blue",
    "green",
    "black",
    "white",
    "brown",
    "yellow",
    "pink",
]
FOODS = [
    "pizza",
    "pasta",
    "salad",
    "bread",
    "cake",
    "ice cream",
    "soup",
    "cheese",
    "apples",
    "fish",
]
PLACES = [
    "kitchen",
    "bathroom",
    "street",
    "beach",
    "park",
    "forest",
    "city",
    "stadium",
    "field",
    "room",
]


@pytest.fixture
def files(tmp_path):
    """Answers of three topics; a label is 5 for the same answer and 1 for another, or else wrong."""
    draw = np.random.default_rng(0)
    answers, truths = ["uid,label,answer1,answer2,condition"], ["uid\treannotated-label"]
    for uid in range(120):
        words = (COLOURS, FOODS, PLACES)[uid % 3]
        one, other = draw.choice(words, size=2, replace=False)
        truth = int(draw.choice([1, 5]))
        label = int(draw.choice([2, 3, 4])) if draw.random() < 0.5 else truth
        answers.append(f"{uid},{label},{one},{one if truth == 5 else other},the {uid % 3}")
        truths.append(f"{uid}\t{-1 if uid == 7 else truth}")
    truths.append("999\t3")
    return (
        write(tmp_path / "answers.csv", "\n".join(answers) + "\n"),
        write(tmp_path / "truth.tsv", "\n".join(truths) + "\n"),
    )


def run(*arguments, code=0):
    done = CliRunner().invoke(errors, [*map(str, arguments)])
    assert done.exit_code == code, done.output + repr(done.exception)
    return done


def test_command_with_truth_measures_draws_and_writes(files, static_encoder, tmp_path):
    pytest.importorskip("vl_convert")
    answers, truth = files
    out, figure = tmp_path / "suspicious.csv", tmp_path / "curve.svg"
    call = [answers, "--model", f"encoder:{static_encoder}", "--truth", truth, "--k", "1..4"]
    done = run(*call, "-o", out, "--figure", figure)
    assert "all called errors" in done.stdout
    assert "1 instances are skipped: their condition is invalid (-1)" in done.stderr
    assert "1 reannotated labels have no answers" in done.stderr
    again = json.loads(run(*call, "--json").stdout)
    outcomes = {outcome["distribution"]: outcome for outcome in again["evaluation"]["outcomes"]}
    result = outcomes["reannotated"]["clustered"]
    # the same answer has the cosine 1, so that only labels 2 to 4 are out of place
    assert result["f1"]["value"] > again["evaluation"]["all_errors"]["f1"]["value"] + 0.2
    assert again["evaluation"]["training"] + again["evaluation"]["evaluation"] == 119
    assert {point["k"] for point in again["evaluation"]["curve"]} == {1, 2, 3, 4}
    rows = list(csv.DictReader(out.open(encoding="utf-8", newline="")))
    assert [row["uid"] for row in rows] == [one["uid"] for one in again["suspicious"]]
    assert "7" not in {row["uid"] for row in rows}
    assert figure.read_text("utf-8").startswith("<svg")
    assert again["left_out"] == {"invalid_condition": 1, "truth_without_answers": 1}
    assert again["signature"]["n_init"] == 10
    to_truth = again["truth_correlations"]
    # the same answer has the cosine 1, and a label is right in half of the cases
    assert to_truth["answers"]["value"] > to_truth["labels"]["value"] + 0.2
    assert to_truth["difference"]["low"] > 0
    assert to_truth["labels"]["n"] == 119
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("original label"))
    assert f"{to_truth['labels']['value']:.3f}" in row
    assert row.endswith("0.492")


def test_correlations_with_the_truth_are_those_of_scipy():
    vectors, label, truth, _ = planted(3, n=200)
    pair = np.arange(200) // 2
    result = truth_correlations(vectors, label, truth, pair)
    cosines = similarities(vectors.first, vectors.second)
    expected = {
        "answers": spearmanr(cosines, truth).statistic,
        "labels": spearmanr(label, truth).statistic,
    }
    for name, value in expected.items():
        assert result[name].value == pytest.approx(value)
        assert result[name].low < value < result[name].high
    assert result["difference"].value == pytest.approx(expected["answers"] - expected["labels"])
    constant = truth_correlations(vectors, np.full(200, 3), truth, pair, resamples=0)
    assert math.isnan(constant["labels"].value)
    assert constant["labels"].reason
    assert math.isnan(constant["difference"].value)


def test_the_published_correlations_stand_in_the_paper():
    paper = Path(os.environ.get("GICCS_SHARED", ROOT.parent / "shared"), "papers", "l-csts.txt")
    if not paper.is_file():
        pytest.skip(f"{paper} is missing; set GICCS_SHARED")
    answers, labels = (f"{100 * value:.2f}" for value in PUBLISHED_CORRELATIONS.values())
    text = " ".join(paper.read_text("utf-8").split())
    assert (
        f"similarities and reannotated labels ({answers}), and between the original labels" in text
    )
    assert f"labels and reannotated labels ({labels})" in text


def test_long_answers_are_clipped_in_tables_only(static_encoder, tmp_path):
    long = "a dog of no certain breed, " * 20
    lines = [f'{uid},{1 + uid % 5},"{long}{uid}","{long}not {uid}"' for uid in range(10)]
    answers = write(tmp_path / "long.csv", "\n".join(["uid,label,answer1,answer2", *lines]))
    call = [answers, "--model", f"encoder:{static_encoder}", "--k", "1"]
    lines = run(*call).stdout.splitlines()
    assert any("a dog of no certain bre…" in line for line in lines)
    assert max(map(len, lines)) < 140
    assert f"{long}0" in json.loads(run(*call, "--json").stdout)["clusters"][0]["typical"]


def test_chart_has_every_point_and_the_baseline(files, static_encoder, tmp_path):
    pytest.importorskip("altair")
    answers, truth = files
    figure = tmp_path / "curve.json"
    model = f"encoder:{static_encoder}"
    call = [
        answers,
        "--model",
        model,
        "--truth",
        truth,
        "--k",
        "1..3",
        "--figure",
        figure,
        "--json",
    ]
    result = json.loads(run(*call).stdout)["evaluation"]
    (values,) = json.loads(figure.read_text("utf-8"))["datasets"].values()
    drawn = {(row["distribution"], row["K"]): row["F1"] for row in values}
    assert len(values) == len(drawn) == 4 * 3
    for point in result["curve"]:
        assert drawn[point["distribution"], point["k"]] == point["evaluation"]["f1"]
    for k in (1, 2, 3):
        assert drawn["all called errors", k] == result["all_errors"]["f1"]["value"]


def test_command_without_truth_takes_the_papers_k(files, static_encoder):
    answers, _ = files
    call = [answers, "--model", f"encoder:{static_encoder}", "--json"]
    for distribution, k in (("original", 10), ("even", 3)):
        result = json.loads(run(*call, "--distribution", distribution).stdout)
        assert (result["distribution"], result["k"]) == (distribution, k)
        assert result["evaluation"] is None
        assert result["instances"] == 120
        assert all(one["truth"] is None for one in result["suspicious"])
    assert json.loads(run(*call).stdout)["distribution"] == "original"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--distribution", "reannotated"], "--distribution reannotated requires --truth FILE"),
        (["--figure", "a.svg"], "requires --truth FILE"),
        (["--k", "2..5"], "a range for --k requires --truth FILE"),
        (["--k", "0"], "auto, an integer from 1, or a range such as 2..20"),
        (["--k", "5..2"], "auto, an integer from 1, or a range such as 2..20"),
        (["--k", "500"], "k is 500; expected 1 to"),
    ],
)
def test_calls_that_cannot_be_are_refused(options, message, files, static_encoder):
    done = run(files[0], "--model", f"encoder:{static_encoder}", *options, code=2)
    assert message in done.output


def test_a_model_without_vectors_is_refused(files):
    done = run(files[0], "--model", "baseline:char-ngram", code=2)
    assert "baseline:char-ngram: makes no embeddings" in done.output
