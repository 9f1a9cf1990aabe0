"""The functions of bws on paths, data frames and records give what the commands print."""

import json
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import bws
from bws import cli

DATA = Path(__file__).parents[2] / "giccs" / "data"
JUDGMENTS, TUPLES, SCORES = (DATA / f"{name}.csv" for name in ("judgments", "tuples", "scores"))
ROWS = pl.read_csv(JUDGMENTS, infer_schema=False)
SOURCES = {
    "path": JUDGMENTS,
    "text": str(JUDGMENTS),
    "pandas": pd.read_csv(JUDGMENTS),
    "pandas with index": pd.read_csv(JUDGMENTS, index_col=["tuple_id"]),
    "Polars": ROWS,
    "records": ROWS.to_dicts(),
}
every_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())


def printed(command, *arguments):
    result = CliRunner().invoke(command, [str(JUDGMENTS), *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@every_source
def test_scores_are_those_of_the_command(source):
    expected = printed(cli.score, "--scale", "unit")["scores"]
    frame = bws.score(source, scale="unit").to_frame()
    assert isinstance(frame, pl.DataFrame if isinstance(source, pl.DataFrame) else pd.DataFrame)
    frame = (
        pd.DataFrame(frame.to_dict(as_series=False)) if isinstance(frame, pl.DataFrame) else frame
    )
    assert frame["item"].tolist() == [row["item"] for row in expected]
    assert frame["score"].tolist() == [row["score"] for row in expected]


@every_source
def test_reliability_and_agreement_are_those_of_the_commands(source):
    expected = printed(cli.reliability, "--trials", "5")
    assert bws.reliability(source, trials=5).document()["groups"] == expected["groups"]
    assert bws.agreement(source).document()["groups"] == printed(cli.agreement)["groups"]


def test_results_of_polars_frames_have_polars_frames():
    results = [
        *(function(ROWS) for function in (bws.agreement, bws.annotator_report, bws.score)),
        bws.reliability(ROWS, trials=2),
        bws.audit(pl.read_csv(TUPLES)),
        judgments := bws.simulate(pl.read_csv(TUPLES), SCORES, 2, seed=1),
        bws.score(judgments),
    ]
    assert all(isinstance(result.to_frame(), pl.DataFrame) for result in results)
    assert isinstance(results[0].to_frame("pandas"), pd.DataFrame)


def test_records_of_judgments_are_scored():
    records = list(bws.read_judgments(JUDGMENTS).records())
    scores, expected = (
        dict(zip(result.items, result.score, strict=True))
        for result in (bws.score(records), bws.score(JUDGMENTS))
    )
    assert scores == expected


@pytest.mark.parametrize("read", [str, pd.read_csv, pl.read_csv, bws.read_tuples])
def test_simulated_judgments_do_not_depend_on_the_form_of_design_and_truth(read):
    truth = SCORES if read is bws.read_tuples else read(SCORES)
    simulated = bws.simulate(read(TUPLES), truth, 2, seed=1)
    expected = bws.simulate(bws.read_tuples(TUPLES), bws.read_scores(SCORES), 2, seed=1)
    assert simulated.to_frame("polars").equals(expected.to_frame("polars"))


def test_tuples_of_a_frame_are_those_of_its_file(tmp_path):
    items = pd.DataFrame({"item": [*"abcde", *"vwxyz"], "group": ["d1"] * 5 + ["d2"] * 5})
    items.to_csv(tmp_path / "items.csv", index=False)
    design = bws.make_tuples(items, 3, count=10, seed=4)
    assert design.to_frame().equals(
        bws.make_tuples(tmp_path / "items.csv", 3, count=10, seed=4).to_frame()
    )
    assert design.groups.tolist() == ["d1", "d2"]
    assert bws.audit(design.to_frame()).duplicate_tuples == 0
    with pytest.raises(ValueError, match="omit groups"):
        bws.make_tuples(items, 3, groups=["d"] * 10)


def test_ids_are_no_frame():
    for ids in (["a", "b", "c"], np.array(["a", "b", "c"]), pd.Series(["a", "b", "c"])):
        assert len(bws.make_tuples(ids, 3, count=1)) == 1


def test_faults_of_a_frame_have_their_line():
    frame = pd.read_csv(JUDGMENTS)
    frame.loc[1, "best"] = "unknown"
    frame.loc[2, "worst"] = None
    with pytest.raises(bws.InputError) as error:
        bws.score(frame)
    assert [(problem.file, problem.line) for problem in error.value.problems] == [
        ("<data>", 3),
        ("<data>", 4),
    ]


def test_a_missing_column_and_a_repeated_one_are_reported():
    frame = pd.read_csv(JUDGMENTS)
    with pytest.raises(bws.InputError, match="match no format of judgments"):
        bws.score(frame.drop(columns="best"))
    repeated = pd.concat([frame, frame[["best"]]], axis=1)
    with pytest.raises(bws.InputError, match="the header repeats best"):
        bws.score(repeated)


@pytest.mark.parametrize("source", [5, None, [1, 2], ROWS.lazy(), frozenset()])
@pytest.mark.parametrize("function", [bws.score, bws.reliability, bws.agreement, bws.audit])
def test_other_types_are_refused_with_the_expected_ones(function, source):
    kind = type(source).__name__
    with pytest.raises(TypeError, match=f"a pandas or Polars data frame, .* got {kind}"):
        function(source)


def test_results_are_frames_of_either_library():
    scores = bws.score(JUDGMENTS, bootstrap=20)
    frame = scores.to_frame("polars")
    assert frame.columns == [
        "item",
        "group",
        "score",
        "appearances",
        "best",
        "worst",
        "low",
        "high",
    ]
    assert frame["score"].to_list() == scores.score.tolist()
    for result in (bws.reliability(JUDGMENTS, trials=5), bws.agreement(JUDGMENTS)):
        assert result.to_frame().columns.tolist() == result.to_frame("polars").columns
    with pytest.raises(ValueError, match="library is 'arrow'; expected 'pandas' or 'polars'"):
        scores.to_frame("arrow")


def test_long_results_are_shortened_and_texts_escaped():
    rows = [
        {"item1": "<b>a</b>", "item2": f"x{n}", "best": "<b>a</b>", "worst": f"x{n}"}
        for n in range(40)
    ]
    scores = bws.score(rows)
    assert "20 of 41 rows" in repr(scores)
    html = scores._repr_html_()
    assert html.count("<tr>") == 21
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "<b>" not in html
    assert repr(bws.read_tuples(TUPLES)) == "<Tuples: 600 of 3 items each, from 300 items>"


def test_help_and_dir_show_the_interface():
    assert [name for name in dir(bws) if not name.startswith("_")] == sorted(bws.__all__)
    assert "__doc__" in dir(bws)


@pytest.mark.parametrize(
    ("function", "accepted"), [(bws.score, "bws.Judgments"), (bws.audit, "bws.Tuples")]
)
def test_type_errors_name_the_accepted_types(function, accepted):
    with pytest.raises(
        TypeError, match=f"expected {accepted}, a path, a pandas or Polars .* got int"
    ):
        function(3)
    text = pydoc.render_doc(bws, renderer=pydoc.plaintext)
    for name in ("agreement", "make_tuples", "reliability", "score", "simulate"):
        assert f"\n    {name}(" in text


def test_frames_need_neither_library_where_they_are_not_used():
    code = f"import bws, sys; bws.score({str(JUDGMENTS)!r}); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("items", "best", "worst"), [([2, 1, 3, 4], 1.0, 4.0), ([2.0, 1.0, 3.0, 4.0], 1, 4)]
)
def test_numbers_as_items_are_not_read_as_positions(items, best, worst):
    row = {f"item{n}": item for n, item in enumerate(items, 1)} | {"best": best, "worst": worst}
    with pytest.raises(bws.InputError, match="ambiguous format"):
        bws.score([row])


def test_mixed_records_are_refused():
    judgment = bws.Judgment(("a", "b"), "a", "b")
    with pytest.raises(TypeError, match="records of one type"):
        bws.score([judgment, {"item1": "a"}])
