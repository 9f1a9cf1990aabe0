"""One label out of several, and how far annotators agree: by hand, and by statsmodels."""

import csv
import itertools
import json
import math
import statistics

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.csts.cli import main
from giccs.csts.data import read_csts, read_relabelled
from giccs.csts.verification import (
    Triplet,
    agreement,
    fleiss_kappas,
    merged_label,
    read_verification,
    verified,
)

HEADER = "uid,sentence1,sentence2,condition,label,applies,annotator,assignment_id"
DIAGNOSES = [  # Fleiss 1971, Table 1: 30 patients, 6 raters, 5 categories
    (0, 0, 0, 6, 0), (0, 3, 0, 0, 3), (0, 1, 4, 0, 1), (0, 0, 0, 0, 6), (0, 3, 0, 3, 0),
    (2, 0, 4, 0, 0), (0, 0, 4, 0, 2), (2, 0, 3, 1, 0), (2, 0, 0, 4, 0), (0, 0, 0, 0, 6),
    (1, 0, 0, 5, 0), (1, 1, 0, 4, 0), (0, 3, 3, 0, 0), (1, 0, 0, 5, 0), (0, 2, 0, 3, 1),
    (0, 0, 5, 0, 1), (3, 0, 0, 1, 2), (5, 1, 0, 0, 0), (0, 2, 0, 4, 0), (1, 0, 2, 0, 3),
    (0, 0, 0, 0, 6), (0, 1, 0, 5, 0), (0, 2, 0, 1, 3), (2, 0, 0, 4, 0), (1, 0, 0, 4, 1),
    (0, 5, 0, 1, 0), (4, 0, 0, 0, 2), (0, 2, 0, 4, 0), (1, 0, 5, 0, 0), (0, 0, 0, 0, 6),
]  # fmt: skip


def triplet(number, *answers, pair=None):
    pair = number if pair is None else pair
    return Triplet(f"u{number}", f"A{pair}", f"B{pair}", f"c{number}", answers)


@pytest.fixture
def written(tmp_path):
    def write(*rows, header=HEADER):
        path = tmp_path / "verification.csv"
        path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_the_label_is_the_median_or_next_to_it(count):
    for answers in itertools.combinations_with_replacement((1, 2, 3, 4, 5), count):
        label, median = merged_label(answers), statistics.median(answers)
        assert label in (math.floor(median), math.ceil(median))
        if median != int(median):
            mean = statistics.mean(answers)
            nearer = min(
                (math.floor(median), math.ceil(median)), key=lambda one: (abs(one - mean), one)
            )
            assert label == nearer
        assert merged_label(answers[::-1]) == label


@pytest.mark.parametrize(
    ("answers", "label"),
    [((None,), None), ((None, 2), 2), ((None, None, 2), None), ((None, None, 2, 3), 2), ((), None)],
)
def test_more_than_half_must_say_that_it_does_not_apply(answers, label):
    assert merged_label(answers) == label


def test_rows_of_a_pair_follow_each_other_and_the_rest_is_counted():
    result = verified(
        [
            triplet(0, 1, 2, 1, pair="x"),
            triplet(1, None, None, 4, pair="y"),
            triplet(2, 3, 3, 3, pair="z"),
            triplet(3, 5, 5, 4, pair="x"),
        ]
    )
    assert [(instance.uid, instance.label, instance.pair) for instance in result.instances] == [
        ("u3", 5, 0), ("u0", 1, 0), ("u2", 3, 1),
    ]  # fmt: skip
    assert [one.uid for one in result.dropped] == ["u1"]
    assert result.counts == {1: 1, 2: 0, 3: 1, 4: 0, 5: 1}


def test_kappa_is_that_of_fleiss_own_table():
    # as R's irr has it: kappam.fleiss(diagnoses, detail = TRUE)
    whole, each = fleiss_kappas(np.array(DIAGNOSES, float), np.arange(30))
    assert round(whole.value, 3) == 0.430
    assert [round(one.value, 3) for one in each] == [0.245, 0.245, 0.520, 0.471, 0.566]
    assert whole.low < whole.value < whole.high
    assert (whole.n, whole.reason) == (30, "")


def test_kappa_is_that_of_statsmodels():
    oracle = pytest.importorskip(
        "statsmodels.stats.inter_rater", reason="statsmodels is not installed"
    )
    generator = np.random.default_rng(4)
    for raters, categories in [(2, 2), (3, 5), (7, 6)]:
        for rows in (2, 11, 60):
            counts = generator.multinomial(
                raters, generator.dirichlet(np.ones(categories)), size=rows
            )
            if np.count_nonzero(counts.sum(0)) < 2:
                continue
            whole, each = fleiss_kappas(counts.astype(float), np.arange(rows))
            assert whole.value == pytest.approx(oracle.fleiss_kappa(counts), abs=1e-12)
            for place, one in enumerate(each):
                against = np.stack([counts[:, place], raters - counts[:, place]], axis=1)
                if 0 < counts[:, place].sum() < counts.sum():
                    assert one.value == pytest.approx(oracle.fleiss_kappa(against), abs=1e-12)


def test_agreement_of_answers_of_whether_it_applies_and_of_labels():
    triplets = [
        triplet(0, 5, 5, 5), triplet(1, 1, 1, 2), triplet(2, None, None, None),
        triplet(3, 4, None, 4), triplet(4, 3, 3),
    ]  # fmt: skip
    result = agreement(triplets)
    assert list(result) == ["answer", "applies", "label", *(f"label {n}" for n in range(1, 6))]
    assert (result["answer"].n, result["applies"].n, result["label"].n) == (4, 4, 2)
    one_out = "1 triplets without exactly 3 answers are excluded"
    few = "4 sentence pairs: no interval, which needs 5"
    assert result["answer"].reason == f"{one_out}; {few}"
    not_labelled = "2 triplets with answers other than labels are excluded"
    assert result["label"].reason.startswith(f"{one_out}; {not_labelled}; ")
    counts = np.array([[3, 0], [3, 0], [0, 3], [2, 1]], float)
    assert result["applies"].value == fleiss_kappas(counts, np.arange(4))[0].value
    assert math.isnan(result["label 3"].value)
    assert "every answer is in one category" in result["label 3"].reason


def test_what_cannot_be_told_is_nan_with_a_reason():
    alone = agreement([triplet(0, 5), triplet(1, 3)])
    assert all(math.isnan(one.value) and one.n == 0 for one in alone.values())
    assert "no triplet has answers of two annotators" in alone["answer"].reason
    assert "exactly 0" not in alone["answer"].reason
    same = agreement([triplet(0, 5, 5), triplet(1, 5, 5)])
    assert same["answer"].reason == "every answer is in one category: kappa is undefined"
    one_pair = agreement([triplet(0, 5, 5, pair="x"), triplet(1, 3, 5, pair="x")])["answer"]
    assert math.isfinite(one_pair.value)
    assert math.isnan(one_pair.low)
    assert one_pair.reason == "1 sentence pairs: no interval, which needs 5"


def test_the_most_frequent_number_of_answers_counts():
    triplets = [
        triplet(0, 5, 4),
        triplet(1, 3, 1),
        triplet(2, 3, 1, 4),
        triplet(3, 3, 1, 3),
        triplet(4, 2),
    ]
    assert agreement(triplets)["answer"].reason.startswith("3 triplets without exactly 3")


def test_intervals_are_wider_where_conditions_share_their_sentences():
    generator = np.random.default_rng(7)
    alone, shared = [], []
    for number in range(60):
        answers = [5, 5, 5] if number % 3 else list(generator.integers(1, 6, size=3))
        for twin in range(4):
            alone.append(triplet(f"{number}-{twin}", *answers))
            shared.append(triplet(f"{number}-{twin}", *answers, pair=number))
    apart, together = agreement(alone)["label"], agreement(shared)["label"]
    assert apart.value == pytest.approx(together.value)
    assert together.high - together.low > 1.5 * (apart.high - apart.low)  # the root of 4 is 2


RELABEL = f"{HEADER},binary"


@pytest.mark.parametrize(
    ("answers", "binary", "label"),
    [
        ((1, 3), (True, True), 1),  # median 2, mean 2: the lower neighbour
        ((3, 5), (True, True), 3),
        ((1, 1, 3, 5), (True,) * 4, 3),  # median 2, mean 2.5
        ((1, 3, 5, 5), (True,) * 4, 3),  # median 4, mean 3.5
        ((1, 5), (True, True), 3),  # median 3, which is permitted
        ((1, 3, 2), (True, True, False), 1),  # two of three: binary; median and mean 2
        ((3, 5, 4, 5), (True, True, False, True), 5),  # median 4.5, mean 4.25: 5 is nearer than 3
        ((5, 4), (True, False), 4),  # half: graded; median 4.5, mean 4.5
        ((1, 2, 2), (True, False, False), 2),  # graded
        ((None, 1, 4), (True, True), 3),  # one of three invalid; median 2.5, mean 2.5: 3 is nearer
        ((None, None, 5), (True,), None),
        ((None, 5), (True,), 5),  # half invalid
    ],
)
def test_the_label_of_a_binary_condition_is_1_3_or_5(answers, binary, label):
    assert Triplet("u", "A", "B", "the number", answers, binary).label == label


def test_agreement_on_binary_conditions():
    triplets = [
        Triplet("0", "A", "B", "c", (5, 5, 3), (True, True, True)),
        Triplet("1", "A", "B", "d", (1, 3, 2), (True, True, False)),
        Triplet("2", "C", "D", "c", (4, 4, 5), (False, False, False)),
        Triplet("3", "C", "D", "d", (None, 4, 4), (False, False)),
    ]
    kappa = agreement(triplets)["binary"]
    # rows agree 1, 2/6, 1; 5 and 4 of 9 answers
    assert kappa.value == pytest.approx((7 / 9 - 41 / 81) / (1 - 41 / 81))
    assert kappa.n == 3
    assert kappa.reason.startswith("1 triplets with answers other than labels are excluded")


def test_reading_groups_answers_by_uid(written):
    path = written("u2,A,B,c,4,yes,w1,X", "u1,A,B,d,,no,w1,X", "u2,A,B,c,5,yes,w2,Y")
    assert read_verification(path) == (
        Triplet("u2", "A", "B", "c", (4, 5)),
        Triplet("u1", "A", "B", "d", (None,)),
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "u1,A,B,c,6,yes,w2,X",
            "label is '6'; expected one of 1, 2, 3, 4, 5 if the condition applies",
        ),
        (
            "u1,A,B,c,,yes,w2,X",
            "label is ''; expected one of 1, 2, 3, 4, 5 if the condition applies",
        ),
        (
            "u1,A,B,c,3,no,w2,X",
            "label is '3', but the condition does not apply; expected one of the two",
        ),
        ("u1,A,B,c,3,ja,w2,X", "applies is 'ja'; it must be yes or no"),
        ("u1,A,B,d,3,yes,w2,X", "uid 'u1' has other texts in line 2; expected one triplet per uid"),
        (
            "u1,A,B,c,3,yes,w1,Z",
            "repeats the uid and annotator 'u1', 'w1' of line 2; each must be unique",
        ),
        ("u1,A,B,c,3,yes,,Z", "annotator is empty; expected text"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(written, row, message):
    with pytest.raises(InputError) as caught:
        read_verification(written("u1,A,B,c,4,yes,w1,X", row))
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [(3, message)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "u1,A,B,c,4,yes,w2,X,yes",
            "label is '4' for a binary condition; expected one of 1, 3, 5",
        ),
        ("u1,A,B,c,4,yes,w2,X,", "binary is ''; expected yes or no if the condition applies"),
        (
            "u1,A,B,c,,no,w2,X,yes",
            "binary is 'yes', but the condition does not apply; expected an empty cell",
        ),
        ("u1,A,B,c,4,yes,w2,X,ja", "binary is 'ja'; it must be yes, no or empty"),
        (
            "u1,A,B,c,-1,yes,w2,X,no",
            "label is '-1'; expected one of 1, 2, 3, 4, 5 if the condition applies",
        ),
    ],
)
def test_what_is_wrong_in_a_relabelling_is_named_with_its_line(written, row, message):
    with pytest.raises(InputError) as caught:
        read_verification(written("u1,A,B,c,4,yes,w1,X,no", row, header=RELABEL))
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [(3, message)]


def test_other_tables_and_empty_ones_are_refused(written):
    with pytest.raises(InputError, match="no column applies, annotator; existing columns are uid"):
        read_verification(written(header="uid,sentence1,sentence2,condition,label"))
    with pytest.raises(InputError, match="no answers"):
        read_verification(written())


def run(*arguments):
    return CliRunner().invoke(main, ["verified", *arguments])


def test_the_command_writes_a_data_set_and_says_how_far_people_agree(written, tmp_path):
    rows = [
        f"{pair}{which},A{pair},B{pair},c{which},{label},yes,w{worker},X{worker}"
        for pair in range(6)
        for which, labels in (("h", (5, 4, 5)), ("l", (1, 1, 2)))
        for worker, label in enumerate(labels)
    ]
    rows += [f"7h,A7,B7,c,,no,w{worker},X" for worker in range(3)]
    path, output = written(*rows), str(tmp_path / "csts_train.csv")
    done = run(path, "-o", output)
    assert done.exit_code == 0, done.output
    assert "13 triplets, 39 answers" in done.stdout
    assert "nan" not in done.stdout  # the kappa of a label that nobody chose
    assert "undefined" in done.stdout
    assert "1 excluded, because their condition does not apply" in done.stdout
    assert (
        "12 instances: 6 with label 1, 0 with label 2, 0 with label 3, 0 with label 4, 6 with"
        in done.stdout
    )
    result = read_csts(output)
    assert not result.warnings
    assert [instance.label for instance in result.instances] == [5, 1] * 6
    document = json.loads(run(path, "--json").stdout)
    assert document["kappa"]["applies"]["value"] == 1.0
    assert document["left_out"][0]["uid"] == "7h"
    assert document["signature"]["resamples"] == 1000
    with open(output, encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == ["uid", "sentence1", "sentence2", "condition", "label"]


def test_standard_output_has_the_data_alone(written):
    done = run(written("u1,A,B,c,4,yes,w1,X", "u2,A,B,d,2,yes,w1,X"), "-o", "-")
    assert done.stdout == "uid,sentence1,sentence2,condition,label\nu1,A,B,c,4\nu2,A,B,d,2\n"
    assert "2 triplets" in done.stderr


def test_relabelling_gives_the_reannotated_file(written, tmp_path):
    path, labels = (
        written(
            "10,A,B,c,5,yes,w1,X,yes", "10,A,B,c,3,yes,w2,X,yes", "2,A,B,d,,no,w1,X,",
            "2,A,B,d,,no,w2,X,", "x,C,D,c,2,yes,w1,X,no", "x,C,D,c,2,yes,w2,X,no", header=RELABEL,
        ),
        tmp_path / "labels.tsv",
    )  # fmt: skip
    done = run(path, "--relabelled", str(labels))
    assert done.exit_code == 0, done.output
    assert labels.read_bytes() == b"uid\treannotated-label\n2\t-1\n10\t3\nx\t2\n"
    assert read_relabelled(labels) == {"2": -1, "10": 3, "x": 2}
    assert f"written to {labels}" in done.stdout
    assert "whether the condition is binary" in done.stdout
    document = json.loads(run(path, "--relabelled", str(labels), "--json").stdout)
    assert (document["relabelled"], document["output"]) == (str(labels), None)
    assert run(path, "--relabelled", "-").stdout == labels.read_text("utf-8")


def test_standard_output_has_one_document(written):
    path = written("u1,A,B,c,4,yes,w1,X")
    done = run(path, "-o", "-", "--relabelled", "-")
    assert done.exit_code == 2
    assert "-o and --relabelled are the same file; expected another file for -o" in done.stderr
    done = run(path, "--relabelled", "-", "--json")
    assert done.exit_code == 2
    assert "write files with -o and --relabelled" in done.stderr


def test_nothing_applies_and_nothing_is_written(written, tmp_path):
    done = run(written("u1,A,B,c,,no,w1,X"), "-o", str(tmp_path / "out.csv"))
    assert done.exit_code == 2
    assert "no condition applies; nothing to write" in done.output
    assert not (tmp_path / "out.csv").exists()
