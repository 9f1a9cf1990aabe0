"""The rescoring of public judgments: real ones where present, and made-up missing and unreadable ones."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from benchmarks import rescoring
from benchmarks.rescoring import SETS, PublicSet, outcome_of, picture, report
from bws.design import make_tuples
from bws.files import write_judgments
from bws.scoring import score
from bws.simulation import simulate

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[2] / "shared"))
HEADER = "Item1,Item2,Item3,Item4,BestItem,WorstItem\n"


def rows_of(text, name):
    """Cells after the name, of the rows of all tables that begin with it."""
    rows = re.findall(rf"^\| {re.escape(name)} +\|(.*)\|$", text, re.M)
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def listed(file):
    return PublicSet(file.removesuffix(".csv"), file, "[a](https://b.org)", "CC0", "0.9 (a paper)")


def reported(folder, *sets):
    return report({each: outcome_of(folder, each) for each in sets})


def simulated(folder, file="made.csv", annotators=4):
    items = [f"i{n}" for n in range(30)]
    judgments = simulate(
        make_tuples(items, 4, factor=2), np.linspace(-1, 1, 30), annotators=annotators
    )
    write_judgments(judgments, folder / file)
    return judgments


def test_a_set_has_all_splits_and_the_correlation_with_the_choice_model(tmp_path):
    judgments = simulated(tmp_path)
    sizes, *rest = rows_of(reported(tmp_path, listed("made.csv")), "made")[1:]
    assert sizes == ["30", "4", "60", "240", "4", "0", "0"]
    *splits, totals = rest
    assert [row[0] for row in splits] == ["annotation", "tuple", "annotator"]
    for _, *cells in splits:
        r, full, rho, rho_full = map(float, cells)
        assert full == pytest.approx(2 * r / (1 + r), abs=0.002)
        assert rho_full == pytest.approx(2 * rho / (1 + rho), abs=0.002)
    counting = score(judgments).score
    model = score(judgments, "best-worst-logit", scale="counting").score
    reliability, ceiling = (float(total.partition(" ")[0]) for total in totals[:2])
    assert ceiling == pytest.approx(reliability**0.5, abs=0.001)
    assert float(totals[2]) == pytest.approx(pearsonr(counting, model)[0], abs=0.0006)
    assert float(totals[3]) == pytest.approx(spearmanr(counting, model)[0], abs=0.0006)
    assert totals[4] == "0.9 (a paper)"


def test_the_sentence_and_the_picture_of_a_set_have_its_numbers(tmp_path):
    simulated(tmp_path)
    each = listed("made.csv")
    outcome = outcome_of(tmp_path, each)
    text = reported(tmp_path, each)
    (line,) = [line for line in text.splitlines() if line.startswith("- **made")]
    by_split = {row[0]: row[2] for row in rows_of(text, "made")[2:5]}
    for split, title in (
        ("annotation", "the annotations of each tuple"),
        ("tuple", "the tuples"),
        ("annotator", "the annotators"),
    ):
        assert f"{by_split[split]} if {title} are split" in line
    totals = rows_of(text, "made")[5]
    assert f"includes all errors is {totals[0]}" in line
    assert f"by {totals[1]}." in line

    intervals, _, points = picture({each: outcome.result}).to_dict()["layer"]
    drawn = [point["reliability"] for point in points["data"]["values"]]
    assert [f"{value:.3f}" for value in drawn] == [*by_split.values()]
    (interval,) = intervals["data"]["values"]
    assert (
        f"{interval['reliability']:.3f} [{interval['low']:.3f}, {interval['high']:.3f}]"
        == totals[0]
    )


def test_a_set_of_several_files_is_one_set(tmp_path):
    simulated(tmp_path, "all.txt")
    header, *lines = (tmp_path / "all.txt").read_text().splitlines(keepends=True)
    for name, part in (("one", lines[::2]), ("two", lines[1::2])):
        (tmp_path / f"{name}.csv").write_text("".join([header, *part]))
    sizes = rows_of(reported(tmp_path, listed("*.csv")), "*")[1]
    assert sizes[3:5] == ["240", "4"]


def test_missing_sets_are_listed_with_their_source(tmp_path):
    text = reported(tmp_path, *SETS)
    for each in SETS:
        assert rows_of(text, each.name) == [
            [each.source, each.terms, f"missing: expected as `{each.file}`"]
        ]
    assert "nan" not in text


def test_unreadable_rows_are_counted_with_the_reason(tmp_path):
    rows = "a,b,c,d,a,d\nb,c,d,e,b,e\na,c,d,e,a,e\na,b,d,e,a,e\na,b,c,e,a,e\n" * 2
    faults = "a,b,c,b,a,c\na,b,c,d,x,d\n"
    (tmp_path / "some.csv").write_text(HEADER + rows + faults)
    text = reported(tmp_path, listed("some.csv"))
    assert rows_of(text, "some")[0][2] == "scored"
    assert rows_of(text, "some")[1] == ["5", "4", "5", "10", "not named", "2", "0"]
    assert "    some.csv:12: " in text
    assert "    some.csv:13: best is 'x'" in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize("content", ["word,score\na,1\n", HEADER, HEADER + "a,b,c,d,x,d\n"])
def test_a_file_without_judgments_does_not_stop_the_others(tmp_path, content):
    simulated(tmp_path)
    (tmp_path / "broken.csv").write_text(content)
    text = reported(tmp_path, listed("broken.csv"), listed("made.csv"))
    assert [row[-1] for row in rows_of(text, "broken")] == ["cannot be scored, see below"]
    assert "    broken.csv" in text
    assert rows_of(text, "made")[0][2] == "scored"


def test_the_tables_replace_the_block_of_a_document(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- rescoring: begin -->\nold\n<!-- rescoring: end -->\nafter\n")
    rescoring.main([str(tmp_path), "-o", str(page)])
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "Output of `make rescoring`" in text
    with pytest.raises(SystemExit):
        rescoring.main([str(tmp_path / "absent")])
    assert "is not a folder" in capsys.readouterr().err


def test_the_real_hindi_judgments_have_the_known_reliability():
    each = SETS[0]
    if not (SHARED / "data" / each.file).is_file():
        pytest.skip(f"{SHARED / 'data' / each.file} is missing; set GICCS_SHARED")
    sizes, annotation, by_tuple, totals = rows_of(reported(SHARED / "data", each), each.name)[1:]
    assert sizes == ["300", "4", "600", "2400", "not named", "0", "0"]
    # the program of Kiritchenko and Mohammad: Spearman 0.953 to 0.954
    assert float(annotation[3]) == pytest.approx(0.954, abs=0.003)
    # opponents of an item are part of the error only if the tuples are split
    assert float(by_tuple[2]) < float(annotation[2]) - 0.03
    low, high = map(float, re.findall(r"[\d.]+", totals[0])[1:])
    assert low < float(by_tuple[2]) < high < float(annotation[2])
