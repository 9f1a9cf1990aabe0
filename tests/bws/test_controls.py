"""Control items: repeated in rows, without scores, and as a check of annotators."""

from __future__ import annotations

import csv
import json
import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bws
from bws.base.problems import InputError
from bws.cli import analyses, rounds, scores
from bws.components import generalisability
from bws.design import audit
from bws.files import read_judgments, read_tuples, write_judgments
from bws.records import Judgments

SHARED = os.environ.get("GICCS_SHARED")
RUDDIT = Path(SHARED or ".") / "data" / "ruddit"
ITEMS = [f"i{n:02}" for n in range(24)]
HEADER = "item1,item2,item3,item4,best,worst,annotator"
REPEATED = [
    "a,gold,b,gold,gold,a,w1",  # both the best and another item are gold
    "gold,gold,c,a,gold,gold,w2",  # best and worst are two occurrences
    "a,b,c,d,b,c,w1",
    "d,gold,b,c,d,gold,w3",
]


def study_with_controls(seed: int = 0, control: str = "gold") -> list[dict[str, str]]:
    """Simulate judgments of 4 items; the control item takes one or two places in a third of the rows."""
    random = np.random.Generator(np.random.PCG64(seed))
    rows = []
    for number in range(240):
        members = random.permutation(24)[:4].tolist()
        names = [ITEMS[m] for m in members]
        merit = np.array(members) / 12 + random.gumbel(size=4)
        if number % 3 == 0:
            places = random.permutation(4)[: 1 + number % 2]
            for place in places.tolist():
                names[place], merit[place] = control, 1 + random.gumbel()
        order = np.argsort(merit)
        row = {f"item{n}": name for n, name in enumerate(names, start=1)}
        row |= {"best": names[order[-1]], "worst": names[order[0]]}
        rows.append(row | {"annotator": f"w{number % 6}", "tuple_id": f"t{number // 2}"})
        if number % 2 == 0:
            again = dict(rows[-1], annotator=f"w{(number + 3) % 6}")
            again["best"], again["worst"] = again["worst"], again["best"]
            rows[-1]["tuple_id"] = again["tuple_id"] = f"u{number}"
            rows.append(again)
        else:
            rows[-1]["tuple_id"] = f"u{number}"
    return rows


def counted(rows: list[dict[str, str]], control: str) -> dict[str, tuple[int, int, int]]:
    """Count appearances, best and worst answers of all rows; a loop over rows and columns."""
    appearances, best, worst = Counter(), Counter(), Counter()
    for row in rows:
        for name, item in row.items():
            if name.lower().startswith("item"):
                appearances[item] += 1
        best[row.get("best") or row["BestItem"]] += 1
        worst[row.get("worst") or row["WorstItem"]] += 1
    return {i: (n, best[i], worst[i]) for i, n in appearances.items() if i != control}


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def check_counts(result: bws.Scores, expected: dict[str, tuple[int, int, int]]) -> None:
    assert sorted(result.items) == sorted(expected)
    for item, score, *counts in zip(
        result.items, result.score, result.appearances, result.best, result.worst, strict=True
    ):
        n, best, worst = expected[item]
        assert (tuple(counts), score) == ((n, best, worst), (best - worst) / n)


def test_scores_are_those_of_counting_over_all_rows(tmp_path: Path) -> None:
    rows = study_with_controls()
    path = written(tmp_path / "judgments.csv", rows)
    result = CliRunner().invoke(
        scores.score, [str(path), "--control", "gold", "--json"], catch_exceptions=False
    )
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    found = {
        row["item"]: (row["appearances"], row["best"], row["worst"]) for row in document["scores"]
    }
    assert found == counted(rows, "gold")
    n = len(rows) - len(without_item(rows, "gold"))
    note = (
        f"control items (gold), in {n} of {len(rows)} judgments, have no scores and are in no other"
    )
    assert any(text.startswith(note) for text in document["notes"])
    check_counts(bws.score(str(path), control=["gold"]), counted(rows, "gold"))
    with pytest.raises(InputError, match="are both 'gold'"):
        bws.score(str(path))


def test_answers_that_are_a_repeated_control_item(tmp_path: Path) -> None:
    path = tmp_path / "judgments.csv"
    path.write_text("\n".join([HEADER, *REPEATED]) + "\n")
    judgments = read_judgments(path, control=["gold"])
    assert [(r.items, r.best, r.worst) for r in judgments.records()] == [
        (("a", "gold", "b", "gold"), "gold", "a"),
        (("gold", "gold", "c", "a"), "gold", "gold"),
        (("a", "b", "c", "d"), "b", "c"),
        (("d", "gold", "b", "c"), "d", "gold"),
    ]
    assert judgments.best.tolist() == [1, 0, 1, 0]
    assert judgments.worst.tolist() == [0, 1, 2, 1]
    once = path.with_name("once.csv")
    once.write_text(f"{HEADER}\na,gold,b,c,gold,gold,w1\n")
    with pytest.raises(InputError, match="best and worst are both 'gold'"):
        read_judgments(once, control=["gold"])


def test_order_of_rows_and_items_changes_nothing(tmp_path: Path) -> None:
    rows = study_with_controls()
    random = np.random.Generator(np.random.PCG64(1))
    shuffled = []
    for row in [rows[n] for n in random.permutation(len(rows))]:
        names = random.permutation([row[f"item{n}"] for n in range(1, 5)]).tolist()
        shuffled.append(row | {f"item{n}": name for n, name in enumerate(names, start=1)})
    first, second = (
        read_judgments(written(tmp_path / f"{n}.csv", each), control=["gold"])
        for n, each in enumerate((rows, shuffled))
    )
    assert first.canonical.digest() == second.canonical.digest()
    for method in ("counting", "best-worst-logit", "elo"):
        one, two = (
            dict(zip(s.items, s.score, strict=True))
            for s in (bws.score(first, method), bws.score(second, method))
        )
        assert one == pytest.approx(two, abs=1e-9)
    assert (
        bws.reliability(first).groups[0].pearson.mean
        == bws.reliability(second).groups[0].pearson.mean
    )


def test_written_judgments_are_read_with_the_same_controls(tmp_path: Path) -> None:
    rows = study_with_controls()
    judgments = read_judgments(
        written(tmp_path / "judgments.csv", rows), control=["gold=best", "i03"]
    )
    write_judgments(judgments, tmp_path / "again.csv")
    again = read_judgments(tmp_path / "again.csv")
    assert again.canonical.digest() == judgments.canonical.digest()
    assert again.tuples.controls.keys() == {("", "gold"), ("", "i03")}
    header = (tmp_path / "again.csv").read_text().splitlines()[0]
    assert header.endswith(",control")


def test_the_column_declares_items_of_its_group_only(tmp_path: Path) -> None:
    path = tmp_path / "judgments.csv"
    path.write_text(
        "group,item1,item2,item3,best,worst,annotator,control\n"
        "g1,a,b,c,a,b,w1,c=worst\n"
        "g1,a,b,d,b,d,w1,\n"
        "g2,a,b,c,c,a,w1,\n"
    )
    result = bws.score(path)
    assert list(zip(result.groups, result.items, strict=True)) == [
        ("g1", "a"), ("g1", "b"), ("g1", "d"), ("g2", "a"), ("g2", "b"), ("g2", "c"),
    ]  # fmt: skip
    in_all_groups = bws.score(path, control=["c"])
    assert "c" not in in_all_groups.items


@pytest.mark.parametrize(
    ("cell", "control", "message"),
    [
        ("x", [], r"judgments.csv:2: control is 'x'; expected items of the row"),
        ("a=middle", [], "control is 'a=middle'"),
        ("a=best;a=worst", [], "control is 'a=best;a=worst'"),
        ("", ["x"], "control item 'x' is no item of the judgments"),
        ("", ["a=middle"], "control item 'a=middle' is no item"),
        ("", ["a", "b", "c"], "all items are control items"),
    ],
)  # fmt: skip
def test_invalid_declarations(cell: str, control: list[str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "judgments.csv"
    path.write_text(f"item1,item2,item3,best,worst,control\na,b,c,a,b,{cell}\n")
    with pytest.raises(InputError, match=message):
        read_judgments(path, control=control)


def test_a_name_that_ends_like_an_expectation_is_an_item(tmp_path: Path) -> None:
    path = tmp_path / "judgments.csv"
    path.write_text("item1,item2,item3,best,worst\na=best,a,c,a,c\na,c,d,a,d\n")
    assert "a" in bws.score(path, control=["a=best"]).items


def without_item(rows: list[dict[str, str]], control: str) -> list[dict[str, str]]:
    return [row for row in rows if control not in [row[f"item{n}"] for n in range(1, 5)]]


def test_agreement_and_annotators_use_tuples_without_control_items(tmp_path: Path) -> None:
    rows = study_with_controls()
    judgments = read_judgments(written(tmp_path / "all.csv", rows), control=["gold"])
    others = read_judgments(written(tmp_path / "others.csv", without_item(rows, "gold")))
    one, two = bws.agreement(judgments).groups[0], bws.agreement(others).groups[0]
    assert one.alpha == two.alpha
    assert one.tuples == two.tuples
    assert any("tuples with control items" in note for note in one.notes)
    reports = [bws.annotator_report(each).annotators for each in (judgments, others)]
    for a, b in zip(*reports, strict=True):
        assert (a.annotator, a.judgments) == (b.annotator, b.judgments)
        assert (a.compliance, a.scale) == pytest.approx((b.compliance, b.scale), nan_ok=True)


def halves_by_loop(rounds: list[tuple[dict[str, str], bool]]) -> float:
    scores = []
    for half in (True, False):
        counts = counted([row for row, first in rounds if first == half], "gold")
        scores.append({item: (b - w) / n for item, (n, b, w) in counts.items()})
    shared = sorted(scores[0].keys() & scores[1].keys())
    return float(np.corrcoef([[s[i] for i in shared] for s in scores])[0, 1])


def test_split_halves_count_all_rows_for_the_other_items(tmp_path: Path) -> None:
    """Two annotators: the only split by annotator is known, and both of its halves are counted by a loop."""
    rows = study_with_controls()
    for number, row in enumerate(rows):
        row["annotator"] = f"w{number % 2}"
        row["tuple_id"] = f"t{number}"
    judgments = read_judgments(written(tmp_path / "judgments.csv", rows), control=["gold"])
    found = bws.reliability(judgments, split="annotator", trials=3).groups[0]
    expected = halves_by_loop([(row, row["annotator"] == "w0") for row in rows])
    assert found.pearson.trials == pytest.approx([expected] * 3, abs=1e-12)
    assert found.items == 24


def components_by_loop(rows: list[dict[str, str]], control: str) -> tuple[float, float]:
    """Return half the mean squared difference of two values of an item: same tuple, both different."""
    values: dict[str, list[tuple[str, str, int]]] = {}
    for row in rows:
        for n in range(1, 5):
            item = row[f"item{n}"]
            if item != control:
                value = (row["best"] == item) - (row["worst"] == item)
                values.setdefault(item, []).append((row["tuple_id"], row["annotator"], value))
    sums = {"tuple": [0.0, 0], "both": [0.0, 0]}
    for of_item in values.values():
        for i, (t, a, x) in enumerate(of_item):
            for u, b, y in of_item[:i]:
                kind = "tuple" if t == u and a != b else "both" if t != u and a != b else ""
                if kind:
                    sums[kind][0] += (x - y) ** 2 / 2
                    sums[kind][1] += 1
    return sums["tuple"][0] / sums["tuple"][1], sums["both"][0] / sums["both"][1]


def test_components_are_those_of_the_values_of_other_items(tmp_path: Path) -> None:
    rows = study_with_controls()
    for row in rows:  # tuples by their items, as canonical judgments have them
        row["tuple_id"] = "-".join(sorted(row[f"item{n}"] for n in range(1, 5)))
    rows = list({(row["tuple_id"], row["annotator"]): row for row in rows}.values())
    judgments = read_judgments(written(tmp_path / "judgments.csv", rows), control=["gold"])
    study = generalisability(judgments.canonical)
    same_tuple, different = components_by_loop(rows, "gold")
    assert study.variances["design"].value == pytest.approx(different - same_tuple)
    assert len(study.components.error) == 24


@pytest.mark.parametrize("method", ["best-worst-logit", "maxdiff", "bradley-terry", "elo"])
def test_choice_models_leave_control_items_out(method: str, tmp_path: Path) -> None:
    judgments = read_judgments(
        written(tmp_path / "judgments.csv", study_with_controls()), control=["gold"]
    )
    options = {} if method == "elo" else {"interval": "model", "ranks": True}
    result = bws.score(judgments, method, **options)
    assert "gold" not in result.items
    assert len(result) == 24
    utility = bws.utilities(judgments, method).utility
    assert utility.mean() == pytest.approx(1000 if method == "elo" else 0, abs=1e-9)
    if method != "elo":
        assert sorted(result.rank_high)[-1] == 24
        assert (result.low <= result.score).all()
        assert (result.score <= result.high).all()
        counting = bws.score(judgments, method, scale="counting")
        assert counting.score.sum() == pytest.approx(0, abs=1e-9)


def test_random_tuples_need_enough_other_items() -> None:
    rows = [bws.Judgment(("a", "b", "gold"), best, "b") for best in ("a", "gold")]
    judgments = bws.judgments_from_records(rows, control=["gold"])
    assert bws.score(judgments, "maxdiff", prior=1).score[0] > 0
    with pytest.raises(ValueError, match="needs tuples of 3 items, which a group does not have"):
        bws.score(judgments, "maxdiff", prior=1, scale="counting")


def test_inverse_hessian_is_that_of_contrasts_to_the_mean_of_other_items(tmp_path: Path) -> None:
    """Errors of u_i minus the mean of the other items, from a dense inverse with all items."""
    from bws.scoring.choice import best_worst_logit
    from bws.scoring.posterior import Outcomes, Posterior, maximize

    judgments = read_judgments(
        written(tmp_path / "judgments.csv", study_with_controls()), control=["gold"]
    )
    fitted = bws.utilities(judgments, "best-worst-logit", cluster="judgment", prior=1.0)
    canonical = judgments.canonical
    posterior = Posterior(Outcomes.from_judgments(canonical), best_worst_logit(4), 1.0)
    inverse = np.linalg.inv(posterior.hessian(maximize(posterior, None).utility).toarray())
    contrast = np.eye(25)[:24] - np.append(np.full(24, 1 / 24), 0)
    stderr = np.sqrt(np.diag(contrast @ inverse @ contrast.T))
    assert fitted.stderr == pytest.approx(stderr[np.argsort(canonical.origin[:24])])


def test_share_of_expected_answers_per_annotator(tmp_path: Path) -> None:
    rows = study_with_controls()
    path = written(tmp_path / "judgments.csv", rows)
    result = CliRunner().invoke(
        analyses.agreement,
        [str(path), "--control", "gold=best", "--annotators", "--json"],
        catch_exceptions=False,
    )
    for report in json.loads(result.stdout)["annotators"]["annotators"]:
        answers = [
            row["best"] == "gold"
            for row in rows
            if row["annotator"] == report["annotator"]
            and "gold" in [row[f"item{n}"] for n in range(1, 5)]
        ]
        assert report["control_answers"] == len(answers)
        share = sum(answers) / len(answers) if answers else None
        assert report["control"] == (share if share is None else pytest.approx(share))


def test_expectations_of_the_column_are_those_of_its_tuple(tmp_path: Path) -> None:
    path = tmp_path / "judgments.csv"
    path.write_text(
        "tuple_id,item1,item2,item3,best,worst,annotator,control\n"
        "t1,gold,a,b,gold,a,w1,gold=best\n"
        "t1,gold,a,b,a,gold,w2,gold=best\n"
        "t2,gold,c,d,c,gold,w1,gold=worst\n"
        "t3,gold,a,d,a,d,w1,gold\n"
        "t4,a,b,c,a,b,w1,\n"
        "t4,a,b,c,b,a,w2,\n"
    )
    found = {
        a.annotator: (a.control_answers, a.control) for a in bws.annotator_report(path).annotators
    }
    assert found == {"w1": (2, 1.0), "w2": (1, 0.0)}
    table = bws.annotator_report(path).result_table().csv().splitlines()
    assert table[0].endswith(",control,control_answers")


def test_a_hub_item_is_named(tmp_path: Path) -> None:
    rows = [f"hub,a{n},b{n},hub,a{n},w{n % 3}" for n in range(25)]
    path = tmp_path / "judgments.csv"
    path.write_text("\n".join(["item1,item2,item3,best,worst,annotator", *rows]) + "\n")
    (note,) = [note for note in bws.score(path).notes if "--control" in note]
    assert note.startswith("item 'hub' is in 25 judgments, the median item in 1;")
    assert any("--control hub" in note for note in bws.reliability(path).notes)
    assert not any("--control" in note for note in bws.score(path, control=["hub"]).notes)
    path.write_text("\n".join(["item1,item2,item3,best,worst,annotator", *rows[:20]]) + "\n")
    assert not any("--control" in note for note in bws.score(path).notes)


def test_tuples_with_a_column_control(tmp_path: Path) -> None:
    path = tmp_path / "tuples.csv"
    path.write_text(
        "tuple_id,group,item1,item2,item3,control\n"
        "t1,,a,b,c,\nt2,,a,gold,gold,gold=best\nt3,,b,c,a,\n"
    )
    tuples = read_tuples(path)
    assert tuples.items.tolist() == ["a", "b", "c", "gold"]
    bws.write_tuples(tuples, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == path.read_text()
    assert audit(tuples).tuples == 2
    truth = {"a": 0.1, "b": 0.2, "c": 0.3, "gold": 0.9}
    judged = bws.simulate(tuples, np.array([truth[i] for i in tuples.items]), annotators=4)
    write_judgments(judged, tmp_path / "judgments.csv")
    assert "gold" not in bws.score(tmp_path / "judgments.csv").items
    report = bws.annotator_report(tmp_path / "judgments.csv")
    assert {a.control_answers for a in report.annotators} == {1}
    with pytest.raises(ValueError, match="control items cannot be extended"):
        bws.extend_tuples(tuples, ["z"])


def test_control_items_are_never_chosen_for_a_round(tmp_path: Path) -> None:
    tuples = bws.make_tuples(ITEMS, 4, factor=2)
    judged = bws.simulate(tuples, np.linspace(-1, 1, 24), annotators=3)
    marked = bws.next_round(judged, tuples, 20, control=["i05"])
    assert "i05" not in marked.items[np.unique(marked.members)]
    evidence = bws.stopping(judged, control=["i05"])
    assert evidence.judgments == np.count_nonzero(
        [("i05" not in record.items) for record in judged.records()]
    )


def test_models_are_compared_without_control_items(tmp_path: Path) -> None:
    tuples = bws.make_tuples(ITEMS, 4, factor=8)
    people = bws.simulate(tuples, np.linspace(-1, 1, 24), annotators=8)
    models = bws.simulate(tuples, np.linspace(-1, 1, 24), annotators=1, seed=1)
    models = Judgments(
        **{
            name: getattr(models, name)
            for name in ("tuples", "tuple_of", "best", "worst", "annotator_of", "shown")
        },
        annotators=np.array(["model:m@1"], dtype=object),
    )
    powered = bws.prediction_powered_scores(people, models, control=["i05"])
    assert sorted(powered.items) == sorted(set(ITEMS) - {"i05"})
    assert not math.isnan(powered.score.sum())
    verdict = bws.verdict(people, models, control=["i05"])
    assert verdict.notes[0].startswith("verdict: without the")


@pytest.mark.skipif(not SHARED, reason="needs the data of Ruddit (GICCS_SHARED)")
def test_ruddit(tmp_path: Path) -> None:
    """78,639 judgments with a placeholder up to three times in a row, and the 6,000 published scores."""
    file = RUDDIT / "Ruddit_individual_annotations.csv"
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    result = bws.score(file, control=["gold_comment"])
    check_counts(result, counted(rows, "gold_comment"))
    with (RUDDIT / "Ruddit.csv").open() as lines:
        published = {
            row["comment_id"]: float(row["offensiveness_score"]) for row in csv.DictReader(lines)
        }
    scores_by_item = dict(zip(result.items, result.score, strict=True))
    assert scores_by_item == pytest.approx(published, abs=0.0005 + 1e-9)


def test_a_control_item_can_be_absent_from_an_earlier_batch(tmp_path: Path) -> None:
    header = "item1,item2,item3,best,worst,annotator"
    earlier = [f"a,b,{other},a,b,w{n}" for n, other in enumerate("cdcd")]
    (tmp_path / "earlier.csv").write_text("\n".join([header, *earlier]) + "\n")
    later = [f"a,GOLD,{other},a,{other},w{n}" for n, other in enumerate("cdcd")]
    (tmp_path / "later.csv").write_text("\n".join([header, *later, "GOLD,b,GOLD,GOLD,b,w5"]) + "\n")

    def scored(path: str, anchor: str) -> tuple[int, str]:
        arguments = [str(tmp_path / path), "--control", "GOLD=best"]
        result = CliRunner().invoke(
            scores.score, [*arguments, "--anchor", str(tmp_path / anchor), "--format", "csv"]
        )
        return result.exit_code, result.output

    code, output = scored("later.csv", "earlier.csv")
    assert (code, "\nGOLD," in output) == (0, False)
    code, output = scored("earlier.csv", "later.csv")
    assert code == 2
    assert "earlier.csv: control item 'GOLD=best' is no item" in output
    batch = read_judgments(tmp_path / "earlier.csv", control=["GOLD"], control_optional=True)
    assert not batch.tuples.controls


@pytest.mark.parametrize("command", ["bws-next", "bws-stop"])
def test_control_items_can_be_repeated_in_the_tuples_of_rounds(
    command: str, tmp_path: Path
) -> None:
    tuples = bws.make_tuples(ITEMS, 4, factor=2)
    judged = bws.simulate(tuples, np.linspace(-1, 1, 24), annotators=3)
    write_judgments(judged, tmp_path / "judgments.csv")
    bws.write_tuples(tuples, tmp_path / "tuples.csv")
    for name in ("judgments.csv", "tuples.csv"):  # The last tuple has i05 twice.
        lines = (tmp_path / name).read_text().splitlines()
        extra = {"tuple_id": "t99", "best": "i05", "worst": "i01", "annotator": "w9"}
        extra |= {
            "shown": "i05;i01;i05;i02",
            "item1": "i05",
            "item2": "i01",
            "item3": "i05",
            "item4": "i02",
        }
        row = ",".join(extra.get(column, "") for column in lines[0].split(","))
        (tmp_path / name).write_text("\n".join([*lines, row]) + "\n")
    paths = [str(tmp_path / "judgments.csv"), "--tuples", str(tmp_path / "tuples.csv")]
    options = ["-n", "10"] if command == "bws-next" else []
    run = rounds.next_round if command == "bws-next" else rounds.stop
    result = CliRunner().invoke(run, [*paths, "--control", "i05", *options])
    assert result.exit_code == 0, result.output
    files = tmp_path / "judgments.csv", tmp_path / "tuples.csv"
    if command == "bws-next":
        chosen = bws.next_round(*files, 10, control=["i05"])
        assert "i05" not in chosen.items[np.unique(chosen.members)]
    else:
        evidence = bws.stopping(*files, control=["i05"])
        assert evidence.judgments == sum("i05" not in record.items for record in judged.records())
    twice = CliRunner().invoke(run, [*paths, *paths[1:], "--control", "i05", *options])
    assert twice.exit_code == 2
    first = tuples.ids[0]
    assert f"tuple id {first!r} is in two rounds" in twice.output


def test_control_items_of_unjudged_groups_are_not_chosen(tmp_path: Path) -> None:
    groups = ["g"] * 12 + ["h"] * 12
    names = [f"i{n:02}" for n in range(12)] * 2
    tuples = bws.make_tuples(names, 4, groups=groups, factor=2)
    judged = bws.simulate(tuples, np.linspace(-1, 1, 24), annotators=3)
    judged = judged.select(tuples.groups[tuples.group_of_tuple[judged.tuple_of]] == "g")
    write_judgments(judged, tmp_path / "judgments.csv")
    chosen = bws.next_round(tmp_path / "judgments.csv", tuples, 20, control=iter(["i05"]))
    assert "i05" not in chosen.items[np.unique(chosen.members)]


def test_notes_name_an_item_of_several_groups_once(tmp_path: Path) -> None:
    rows = [f"{g},hub,a{g}{n},b{g}{n},hub,a{g}{n},w{n % 3}" for g in "xy" for n in range(25)]
    path = tmp_path / "judgments.csv"
    path.write_text("\n".join(["group,item1,item2,item3,best,worst,annotator", *rows]) + "\n")
    (note,) = read_judgments(path).notes
    assert note.startswith("item 'hub' is in 50 judgments, the median item in 1;")
    (note,) = read_judgments(path, control=["hub"]).notes
    assert note.startswith("control items (hub), in 50 of 50 judgments")


def test_contradictory_expectations_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "judgments.csv"
    path.write_text("item1,item2,item3,best,worst,annotator\na,b,c,a,b,w\na,b,d,b,d,w\n")
    message = "judgments.csv: control item 'a' is declared with =best and =worst; expected one"
    result = CliRunner().invoke(
        scores.score, [str(path), "--control", "a=best", "--control", "a=worst"]
    )
    assert result.exit_code == 2
    assert message in result.output
    with pytest.raises(InputError, match="declared with =best and =worst"):
        bws.score(read_judgments(path, control=["a=best"]), control=["a=worst"])
    # A declaration without answer contradicts none, in either order.
    for names in (["a", "a=best"], ["a=best", "a"]):
        assert read_judgments(path, control=names).tuples.controls == {("", "a"): "best"}
    judged = bws.score(read_judgments(path, control=["a=best"]), control=["a"])
    assert judged.items.tolist() == ["b", "c", "d"]


def test_faulty_cells_of_the_column_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "judgments.csv"
    rows = [f"a,b,c{n},a,b,{'zz' if n % 2 else 'yes'}" for n in range(20)]
    path.write_text("\n".join(["item1,item2,item3,best,worst,control", *rows]) + "\n")
    with pytest.raises(InputError) as caught:
        read_judgments(path)
    (line,) = str(caught.value).splitlines()
    assert "control is 'yes'" in line
    assert line.endswith("(20 lines like this: 2, 3, 4, 5, 6, ...)")
