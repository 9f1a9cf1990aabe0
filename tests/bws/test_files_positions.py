"""Answers that are positions or letters: where they start, what skipped rows change, and other scripts."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bws
from bws.base.problems import InputError
from bws.cli import scores
from bws.files import read_judgments

ROOT = Path(__file__).parents[2]
ITEMS = [f"i{n:02}" for n in range(12)]
SEMEVAL = "item1,item2,item3,item4,Most_Related,Least_Related"


def study(n_rows: int = 120, seed: int = 0) -> list[tuple[list[str], int, int]]:
    """Return rows of (items, best, worst), with answers as indices from 0."""
    random = np.random.Generator(np.random.PCG64(seed))
    rows = []
    for _ in range(n_rows):
        members = random.permutation(12)[:4]
        order = np.argsort(members + random.gumbel(size=4))
        rows.append(([ITEMS[m] for m in members], int(order[-1]), int(order[0])))
    return rows


def semeval(path: Path, rows: list[tuple[list[str], int, int]], start: int) -> Path:
    lines = [
        ",".join([*items, str(best + start), str(worst + start)]) for items, best, worst in rows
    ]
    path.write_text("\n".join([SEMEVAL, *lines]) + "\n")
    return path


def chosen(judgments: bws.Judgments) -> list[tuple[str, str]]:
    return [(record.best, record.worst) for record in judgments.records()]


@pytest.mark.parametrize("on_invalid", ["error", "skip"])
@pytest.mark.parametrize("start", [0, 1])
def test_positions_from_0_and_from_1_are_the_same_answers(
    start: int, on_invalid: str, tmp_path: Path
) -> None:
    rows = study()
    judgments = read_judgments(semeval(tmp_path / "j.csv", rows, start), on_invalid=on_invalid)
    assert chosen(judgments) == [(items[best], items[worst]) for items, best, worst in rows]
    notes = ["the positions of best and worst count from 0: 0 occurs, and 4 does not"]
    assert judgments.notes == (notes if start == 0 else [])


def test_the_columns_best_and_worst_are_decided_together(tmp_path: Path) -> None:
    """No best answer is 0 or 4; the worst ones are."""
    rows = [(items, best, worst) for items, best, worst in study() if best in (1, 2)]
    judgments = read_judgments(semeval(tmp_path / "j.csv", rows, 0))
    assert chosen(judgments) == [(items[best], items[worst]) for items, best, worst in rows]


def test_positions_without_the_first_and_the_last_count_from_1_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "j.csv"
    path.write_text(f"{SEMEVAL}\na,b,c,d,1,2\nb,c,d,a,3,1\n")
    judgments = read_judgments(path)
    assert chosen(judgments) == [("a", "b"), ("d", "b")]
    assert judgments.notes == [
        "the positions of best and worst are taken to count from 1: neither 0 nor 4 occurs"
    ]


def test_0_and_k_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.csv"
    path.write_text(f"{SEMEVAL}\na,b,c,d,0,2\nb,c,d,a,4,1\na,c,d,b,4,1\n")
    with pytest.raises(
        InputError, match=r"j.csv:2: best is '0'; it must be a position from 1 to 4"
    ):
        read_judgments(path)
    with pytest.raises(InputError, match=r"positions from 0 to 4; expected 1 to 4 or 0 to 3"):
        read_judgments(path, on_invalid="skip")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (["2,5", "3,4", "5,2"], "positions from 2 to 5; expected 1 to 4 or 0 to 3"),
    ],
)
def test_positions_from_another_start_are_refused(
    answers: list[str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "j.csv"
    path.write_text("\n".join([SEMEVAL, *(f"a,b,c,d,{answer}" for answer in answers)]) + "\n")
    for on_invalid in ("error", "skip"):
        with pytest.raises(InputError, match="position" if on_invalid == "error" else message):
            read_judgments(path, on_invalid=on_invalid)


def semrel(path: Path, answers: list[str]) -> Path:
    names = ",".join(f"pair{n}{half}" for n in range(1, 5) for half in "ab")
    pairs = ",".join(f"x{n},y{n}" for n in range(1, 5))
    lines = [f"{names},best-pair,worst-pair", *(f"{pairs},{answer}" for answer in answers)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_letters_from_another_start_are_refused(tmp_path: Path) -> None:
    path = semrel(tmp_path / "j.csv", ["B,E", "C,D", "E,B"])
    with pytest.raises(InputError, match="best is 'E'; it must be a letter from A to D"):
        read_judgments(path)
    with pytest.raises(InputError, match="letters from B to E; expected A to D"):
        read_judgments(path, on_invalid="skip")
    skipped = read_judgments(semrel(path, ["A,D", "C,E"]), on_invalid="skip")
    assert len(skipped) == 1


def test_a_single_invalid_position_is_skipped(tmp_path: Path) -> None:
    rows = study()
    path = semeval(tmp_path / "j.csv", rows, 1)
    lines = path.read_text().splitlines()
    lines[1] = lines[1].rsplit(",", 2)[0] + ",7,1"
    path.write_text("\n".join(lines) + "\n")
    judgments = read_judgments(path, on_invalid="skip")
    assert chosen(judgments) == [(items[best], items[worst]) for items, best, worst in rows[1:]]


def test_items_that_lose_many_judgments_are_counted(tmp_path: Path) -> None:
    rows = study()
    path = semeval(tmp_path / "j.csv", rows, 1)
    lines = path.read_text().splitlines()
    for number in (3, 9, 27, 28):
        lines[number] = lines[number].rsplit(",", 2)[0] + ",,1"
    path.write_text("\n".join(lines) + "\n")
    lost = [rows[number - 1][0] for number in (3, 9, 27, 28)]
    n = sum(
        sum(item in items for items in lost) > 0.05 * sum(item in items for items, _, _ in rows)
        for item in ITEMS
    )
    assert 0 < n < 12
    note = f"skipped rows: {n} of 12 items lost more than 5 % of their judgments"
    assert note in read_judgments(path, on_invalid="skip").notes
    result = CliRunner().invoke(scores.score, [str(path), "--on-invalid", "skip", "--json"])
    assert note in json.loads(result.stdout)["notes"]
    assert note in result.stderr


OTHER_DIGITS = ["\uff12", "\u0662", "\u0968", "\u00b2", "\u2461", "2\u200b", "\uff12.0"]
"""Full-width, Arabic-Indic and Devanagari digits, superscripts, and a zero-width space."""
FORMATS = {
    "semeval": f"{SEMEVAL}\na,b,c,d,ANSWER,1\na,b,d,c,4,1\n",
    "mturk-batch": (
        "WorkerId,Input.item1,Input.item2,Input.item3,Answer.best,Answer.worst\n"
        "w1,a,b,c,ANSWER,1\nw2,a,b,c,2,1\nw3,a,b,c,3,1\n"
    ),
    "qualtrics": (
        "ResponseId,giccs_1_best,giccs_1_worst,giccs_1_tuple\n"
        "R_1,ANSWER,1,t1;;;;;a;b;c\nR_2,3,1,t1;;;;;a;b;c\n"
    ),
    "long": "id,block,item,value\np1,1,a,ANSWER\np1,1,b,-1\np1,1,c,0\n",
    "hollis": "best,worst,option1,option2,option3\nANSWER,b,a,b,c\n",
    "csv": "item1,item2,item3,best,worst\na,b,c,ANSWER,b\n",
    "km": "Item1,Item2,Item3,BestItem,WorstItem\na,b,c,ANSWER,b\n",
}  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("answer", OTHER_DIGITS)
def test_digits_of_other_scripts_are_refused_with_their_line(
    answer: str, form: str, tmp_path: Path
) -> None:
    path = tmp_path / "j.csv"
    path.write_text(FORMATS[form].replace("ANSWER", answer))
    with pytest.raises(InputError) as caught:
        read_judgments(path, form)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert answer.strip() in str(caught.value) or repr(answer)[1:-1] in str(caught.value)


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\t", " "])
def test_spaces_around_positions_are_ignored(space: str, tmp_path: Path) -> None:
    path = tmp_path / "j.csv"
    path.write_text(FORMATS["semeval"].replace("ANSWER", f"{space}2{space}"))
    assert chosen(read_judgments(path))[0] == ("b", "a")


def polars_patterns(tree: ast.Module) -> list[str]:
    """Return the string arguments of x.str.method(...), also if they are constants of the module."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    patterns = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Attribute)
            and node.func.value.attr == "str"
        ):
            for argument in node.args:
                value = getattr(argument, "value", constants.get(getattr(argument, "id", "")))
                patterns += [value] if isinstance(value, str) else []
    return patterns


def test_polars_patterns_match_ascii_digits_only() -> None:
    r"""In Polars, \d matches digits of all scripts, which its casts to numbers do not read."""
    found = {
        str(path.relative_to(ROOT)): pattern
        for package in ("bws", "giccs", "mturk", "app")
        for path in (ROOT / package).rglob("*.py")
        if r"\d" in (code := path.read_text(encoding="utf-8"))
        for pattern in polars_patterns(ast.parse(code))
        if "\\d" in pattern
    }
    assert found == {}


@pytest.mark.parametrize("start", [0, 1])
def test_positions_in_several_files_count_from_the_same_number(start: int, tmp_path: Path) -> None:
    """The second file has neither 0 nor 4."""
    rows = study()
    inner = [row for row in rows if {row[1] + start, row[2] + start} <= {1, 2, 3}]
    outer = [row for row in rows if row not in inner]
    whole = read_judgments(semeval(tmp_path / "all.csv", [*outer, *inner], start))
    paths = [
        semeval(tmp_path / "outer.csv", outer, start),
        semeval(tmp_path / "inner.csv", inner, start),
    ]
    assert chosen(read_judgments(paths)) == chosen(whole)
    assert chosen(read_judgments(paths[::-1], on_invalid="skip")) == chosen(
        read_judgments(semeval(tmp_path / "all.csv", [*inner, *outer], start))
    )


def test_files_that_count_from_0_and_from_1_are_refused(tmp_path: Path) -> None:
    paths = [semeval(tmp_path / f"{start}.csv", study(), start) for start in (0, 1)]
    expected = (
        r"0\.csv and .*1\.csv: the answers have positions from 0 to 4; expected 1 to 4 or 0 to 3, "
        "in all files of a study"
    )
    with pytest.raises(InputError, match=expected):
        read_judgments(paths)
