"""Judgments that occur again under other ids, and items with and without a group."""

import csv
import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import bws
from bws import cli
from bws.adaptive import join_rounds
from bws.base.problems import InputError
from bws.copies import certain_copies
from bws.design import make_tuples
from bws.files import as_judgments, judgments_from_records, read_judgments
from bws.records import Judgment
from bws.simulation import simulate
from bws.split_half import reliability

HEADER = ["tuple_id", "group", "item1", "item2", "item3", "item4", "best", "worst", "annotator"]


def study(seed=0, annotators=6, per_tuple=3, n_items=24, noise=0.8):
    """Records of a simulated study of 4-tuples."""
    design = make_tuples([f"i{n:02}" for n in range(n_items)], 4, seed=seed)
    truth = np.linspace(-1, 1, n_items)
    simulated = simulate(design, truth, annotators, per_tuple=per_tuple, noise=noise, seed=seed)
    return list(simulated.records())


def copied(rows, annotator=str, tuple_id="copy {}".format):
    return [
        replace(row, tuple_id=tuple_id(row.tuple_id), annotator=annotator(row.annotator))
        for row in rows
    ]


def anonymous(rows):
    return [replace(row, annotator="") for row in rows]


def permuted(rows, seed=0):
    """The rows, and the items in each of them, in another order."""
    rng = np.random.default_rng(seed)
    return [
        replace(rows[index], items=tuple(rng.permutation(rows[index].items).tolist()))
        for index in rng.permutation(len(rows))
    ]


def messages(rows):
    return [problem.message for problem in judgments_from_records(rows).copies]


def content(row):
    return row.group, frozenset(row.items), row.best, row.worst


def write(path, rows):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(HEADER)
        for r in rows:
            table.writerow([r.tuple_id, r.group, *r.items, r.best, r.worst, r.annotator])
    return str(path)


def run(command, *arguments):
    return CliRunner().invoke(getattr(cli, command), [*map(str, arguments)])


# The same annotator -------------------------------------------------------------------------------


def test_judgments_of_the_same_annotator_under_another_tuple_id():
    rows = study()
    doubled = rows + copied(rows[:7])
    assert messages(rows) == []
    (problem,) = judgments_from_records(doubled).copies
    assert (problem.file, problem.line) == ("records", len(rows) + 1)
    assert problem.message == (
        f"7 of {len(rows) + 7} judgments repeat annotator, items, best and worst under another tuple id "
        f"(line {len(rows) + 1} and 1, line {len(rows) + 2} and 2, line {len(rows) + 3} and 3, ...)"
    )


@pytest.mark.parametrize("seed", range(5))
def test_their_number_is_that_of_a_slow_program(seed):
    # Few items, so that designs repeat sets of items and annotators repeat answers.
    rng = np.random.default_rng(seed)
    items = tuple("abcde")
    rows = []
    for number in range(120):
        shown = tuple(rng.permutation(items)[:3].tolist())
        best, worst = rng.permutation(shown)[:2].tolist()
        rows.append(Judgment(shown, best, worst, f"w{rng.integers(4)}", tuple_id=f"t{number}"))
    times = Counter((row.annotator, content(row)) for row in rows)
    expected = sum(n - 1 for n in times.values())
    (first,) = {message.split()[0] for message in messages(rows)[:1]} or {"0"}
    assert int(first) == expected
    assert messages(permuted(rows))[0].split()[:3] == messages(rows)[0].split()[:3]


def test_another_answer_to_repeated_items_is_no_copy():
    row = Judgment(("a", "b", "c"), "a", "c", "w1", tuple_id="t1")
    assert messages([row, replace(row, tuple_id="t2", best="b")]) == []
    assert messages([row, replace(row, tuple_id="t2", worst="b")]) == []
    assert messages([row, replace(row, tuple_id="t2", annotator="w2")]) == []
    groups = [replace(row, tuple_id=f"t{n}", group=f"g{n}") for n in range(2)]
    assert messages(groups) == []


def test_runs_of_a_model_are_no_copies():
    frame = {
        "tuple_id": ["t1", "t1", "t2"],
        "item1": "aaa", "item2": "bbb", "item3": "ccc", "best": "aaa", "worst": "ccc",
        "annotator": ["model:m@1"] * 3,
        "prompt": ["p"] * 3,
        "run": ["1", "2", "2"],
    }  # fmt: skip
    rows = [dict(zip(frame, values, strict=True)) for values in zip(*frame.values(), strict=True)]
    (problem,) = bws.read_judgments(rows).copies
    assert problem.message.startswith("1 of 3 judgments repeat annotator")
    assert bws.read_judgments([row | {"run": str(n)} for n, row in enumerate(rows)]).copies == ()


# Whole files and annotators -----------------------------------------------------------------------


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("per_tuple", [1, 3])
def test_a_file_that_was_appended_to_itself(times, per_tuple):
    rows = anonymous(study(per_tuple=per_tuple))
    assert messages(rows) == []
    (message,) = messages(permuted([row for n in range(times) for row in copied(rows)]))
    assert message.startswith(
        f"{(times - 1) * len(rows)} of {times * len(rows)} judgments repeat items, best and worst: each "
        f"occurs {times} times or a multiple of it"
    )


def test_an_export_with_new_names_of_annotators():
    rows = study()
    (message,) = messages(rows + copied(rows, annotator="new {}".format))
    assert message.startswith(
        f"{len(rows)} of {2 * len(rows)} judgments repeat items, best and worst"
    )
    alone = study(per_tuple=1, annotators=8)
    (message,) = messages(alone + copied(alone, annotator="new {}".format))
    assert message.startswith(f"{len(alone)} of {2 * len(alone)} judgments")


def test_an_annotator_with_the_judgments_of_another():
    rows = study(annotators=4, per_tuple=3, n_items=40)
    twin = [row for row in rows if row.annotator == "simulated-2"]
    (message,) = messages(permuted(rows + copied(twin, annotator=lambda name: "x")))
    assert message.startswith(
        f"{len(twin)} of {len(rows) + len(twin)} judgments are by annotators whose judgments are all equal"
    )
    assert set(message.rsplit("(")[-1].rstrip(")").split(" and ")) == {"'x'", "'simulated-2'"}
    other = copied(twin[:-1], annotator=lambda name: "x")
    last = twin[-1]
    differing = replace(last, tuple_id="copy", annotator="x", best=last.worst, worst=last.best)
    assert messages([*rows, *other, differing]) == []


def test_agreement_is_no_copy():
    # Two annotators agree on most tuples, or on all of few tuples.
    agreed = []
    for seed in range(4):
        rows = study(seed, annotators=4, per_tuple=2, noise=0.05)
        assert messages(rows) == messages(anonymous(rows)) == []
        pairs = defaultdict(list)
        for row in rows:
            pairs[row.tuple_id].append(content(row))
        agreed += [first == second for first, second in pairs.values()]
    assert np.mean(agreed) > 0.75
    few = study(annotators=2, per_tuple=2, n_items=12, noise=0.0)
    assert messages(few) == messages(anonymous(few)) == []


# What is refused ----------------------------------------------------------------------------------


def test_reliability_refuses_copies_which_raise_it():
    rows = study()
    judgments = judgments_from_records(rows + copied(rows))
    for compute in (bws.reliability, bws.reliability_curve, bws.agreement):
        with pytest.raises(InputError, match="delete copies, or use --allow-copies"):
            compute(judgments)
    allowed = bws.reliability(replace(judgments, allow_copies=True)).groups[0]
    single = bws.reliability(judgments_from_records(rows)).groups[0]
    assert allowed.pearson.mean > single.pearson.mean + 0.05
    scores = [bws.score(j).score for j in (judgments, judgments_from_records(rows))]
    np.testing.assert_allclose(*scores)


def test_agreement_refuses_an_anonymous_file_twice():
    rows = anonymous(study())
    twice = judgments_from_records(rows * 2)
    with pytest.raises(InputError, match="appended to itself"):
        bws.agreement(twice)
    once = bws.agreement(judgments_from_records(rows)).groups[0].alpha["both"].value
    allowed = bws.agreement(replace(twice, allow_copies=True)).groups[0].alpha["both"].value

    assert allowed > once


def test_commands_refuse_or_report(tmp_path):
    rows = study()
    path = write(tmp_path / "j.csv", rows + copied(rows))
    line = f"{path}:{len(rows) + 2}: {len(rows)} of {2 * len(rows)} judgments repeat annotator"
    for command in ("reliability", "agreement"):
        result = run(command, path)
        assert result.exit_code == 2
        assert result.stderr.splitlines()[-1].startswith(line)
        assert result.stderr.rstrip().endswith(
            "use --allow-copies if each is a judgment of its own"
        )
        result = run(command, path, "--allow-copies", "--json")
        assert result.exit_code == 0
        assert result.stderr.count(f"warning: {line}") == 1
        assert json.loads(result.stdout)["copies"][0].startswith(line)
    result = run("score", path)
    assert result.exit_code == 0
    assert result.stderr.count(f"warning: {line}") == 1
    assert "copies" not in json.loads(run("agreement", write(path, rows), "--json").stdout)


def test_one_batch_twice_on_the_command_line(tmp_path):
    rows = study()
    first = write(tmp_path / "a.csv", rows)
    second = write(tmp_path / "b.csv", permuted(rows))
    result = run("score", second, "--anchor", first)
    assert result.exit_code == 2
    assert f"{second}: has the same judgments as {first}" in result.stderr


def test_names_of_annotators_that_differ_in_case(tmp_path):
    rows = study()
    renamed = [
        replace(row, annotator="Simulated-1" if n % 2 else "simulated-1")
        for n, row in enumerate(row for row in rows if row.annotator == "simulated-1")
    ]
    result = run("score", write(tmp_path / "j.csv", renamed))
    assert "1 of 2 annotators differ from another only in case or white space" in result.stderr


# Groups -------------------------------------------------------------------------------------------


def test_items_with_and_without_a_group_are_refused(tmp_path):
    path = tmp_path / "j.csv"
    grouped = [Judgment(tuple("abcd"), "a", "d", f"w{n}", "g1", "t1") for n in range(3)]
    other = [Judgment(tuple("wxyz"), "w", "z", f"w{n}", "", "t2") for n in range(2)]
    without = [Judgment(tuple("defg"), "d", "e", f"w{n}", "", "t3") for n in range(2)]
    write(path, grouped + other)
    assert len(bws.read_judgments(path).tuples.items) == 8
    write(path, grouped + other + without)
    with pytest.raises(InputError) as error:
        bws.read_judgments(path)
    assert [str(problem) for problem in error.value.problems] == [
        f"{path}:{line}: item 'd' has no group; in line 2 its group is 'g1'; expected a group in both or in "
        "neither"
        for line in (7, 8)
    ]
    skipped = bws.read_judgments(path, on_invalid="skip")
    assert (len(skipped), skipped.n_left_out) == (5, 2)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (bws.read_tuples, "tuple_id,group,item1,item2\nt1,g1,a,b\nt2,,b,c\n"),
        (bws.read_scores, "item,group,score\nb,g1,0.1\nb,,0.2\n"),
        (bws.read_items, "item,group\nb,g1\nb,\n"),
    ],
)
def test_other_files_with_and_without_a_group(tmp_path, read, text):
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(
        InputError, match=r"file.csv:3: item 'b' has no group; in line 2 its group is 'g1'"
    ):
        read(path)
    path.write_text(
        text.replace("2,,b", "2,,d").replace("\nb,,", "\nd,,").replace("\nb,\n", "\nd,\n")
    )
    read(path)


def test_rounds_with_and_without_a_group():
    grouped = make_tuples(list("abcdef"), 3, groups=["g1"] * 6, count=4)
    plain = make_tuples(list("defghi"), 3, count=4)
    plain = replace(plain, ids=np.array([f"x{n}" for n in range(4)], dtype=object))
    with pytest.raises(ValueError, match="3 items have a group in one round and none in another"):
        join_rounds([grouped, plain])


@pytest.mark.parametrize("is_permuted", [False, True], ids=["in order", "permuted"])
def test_the_lines_of_a_file_that_was_appended_are_named(is_permuted, tmp_path):
    tuples = make_tuples([f"i{n:02}" for n in range(20)], 4, seed=1)
    judgments = simulate(tuples, np.linspace(-1, 1, 20), 5, noise=0.6, seed=1)
    frame = judgments.to_frame("polars").drop("tuple_id", "annotator", "shown")
    path = tmp_path / "judgments.csv"
    twice = pl.concat([frame, frame])
    (twice.sample(fraction=1, shuffle=True, seed=1) if is_permuted else twice).write_csv(path)
    (problem,) = bws.read_judgments(path).copies
    assert f"{len(frame)} of {len(twice)} judgments" in problem.message
    lines = f"(lines {len(frame) + 2} to {len(twice) + 1} and 2 to {len(frame) + 1})"
    assert (lines in problem.message) == (not is_permuted)
    assert problem.line == (None if is_permuted else len(frame) + 2)


def refused_and_reported(judgments):
    judgments = as_judgments(judgments)
    return bool(certain_copies(judgments)), bool(judgments.copies)


@pytest.mark.parametrize(("noise", "expected"), [(1.0, (False, True)), (0.25, (False, True))])
def test_answers_to_items_that_the_design_repeats_are_reported_only(noise, expected):
    tuples = make_tuples([f"i{n}" for n in range(5)], 4, factor=4, allow_repeats=True)
    judgments = simulate(tuples, np.linspace(-1, 1, 5), 5, noise=noise)
    assert refused_and_reported(judgments) == expected
    reliability(judgments, trials=2)


def rows_of(judgments, *without):
    return judgments.to_frame("polars").drop("shown", *without)


@pytest.mark.parametrize("n_dropped", [0, 1, 5])
@pytest.mark.parametrize("without", [("annotator", "tuple_id"), ()], ids=["anonymous", "renamed"])
def test_a_copy_without_some_rows_is_refused(without, n_dropped):
    tuples = make_tuples([f"i{n:02}" for n in range(30)], 4, seed=2)
    frame = rows_of(simulate(tuples, np.linspace(-1, 1, 30), 5, noise=0.6, seed=2), *without)
    copy = frame if without else frame.with_columns(annotator="new " + pl.col("annotator"))
    twice = pl.concat([frame, copy[: len(copy) - n_dropped]])
    assert refused_and_reported(frame) == (False, False)
    assert refused_and_reported(twice) == (True, True)


@pytest.mark.parametrize("annotators", [2, 3, 5])
def test_simulated_annotators_without_noise_are_no_copies(annotators):
    tuples = make_tuples([f"i{n:02}" for n in range(40)], 4, seed=2)
    judgments = simulate(tuples, np.linspace(-1, 1, 40), annotators, noise=0.0)
    assert refused_and_reported(rows_of(judgments)) == (False, False)


def test_answers_about_control_items_are_no_copies():
    rows = [
        {"tuple_id": f"t{n}", "item1": "gold", "item2": f"i{n % 3}", "best": "gold", "worst": f"i{n % 3}",
         "annotator": annotator}
        for n in range(12) for annotator in ("w1", "w2")
    ]  # fmt: skip
    assert read_judgments(rows).copies
    assert not read_judgments(rows, control=["gold"]).copies
