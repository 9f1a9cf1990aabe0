"""The study without some annotators, on the annotation page and by ``giccs score --exclude``."""

import csv
import json
from importlib import resources

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from bws.base.problems import InputError
from bws.files import read_judgments, without_annotators
from bws.scoring import score
from bws.split_half import reliability
from giccs_app.explorer.annotation.exclusion import compare_without
from giccs_app.explorer.labels import text_of
from tests import in_process


@pytest.fixture(scope="module")
def judgments_file(tmp_path_factory):
    """The judgments of the sample by people with names, of whom one exchanges best and worst."""
    rows = list(csv.DictReader(resources.files("giccs.data").joinpath("judgments.csv").open()))
    for row in rows:
        row["annotator"] = row["annotator"].replace("simulated-", "person ")
        if row["annotator"] == "person 2":
            row["best"], row["worst"] = row["worst"], row["best"]
    path = tmp_path_factory.mktemp("study") / "judgments.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_rest_is_what_a_file_without_these_rows_is(judgments_file, tmp_path):
    header, *lines = judgments_file.read_text("utf-8").splitlines(keepends=True)
    rest = tmp_path / "rest.csv"
    rest.write_text(header + "".join(line for line in lines if "person 2" not in line), "utf-8")
    remaining = without_annotators(read_judgments(judgments_file), ["person 2"])
    assert remaining.canonical.digest() == read_judgments(rest).canonical.digest()
    (tmp_path / "out.txt").write_text("person 2\n\n", "utf-8")
    for command in ("bws-score", "bws-reliability", "bws-agreement"):
        left_out = in_process.run(
            command, str(judgments_file), "--exclude", "out.txt", "--json", cwd=tmp_path
        )
        of_rest = in_process.run(command, "rest.csv", "--json", cwd=tmp_path)
        assert left_out.returncode == 0, left_out.stderr
        assert "out.txt: 600 judgments of 1 annotators are left out" in left_out.stderr
        documents = [json.loads(done.stdout) for done in (left_out, of_rest)]
        for document in documents:
            document.pop("source", None)
        assert documents[0] == documents[1]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["person 2", "person 9"], "no judgments of 'person 9', to be excluded"),
        ([f"person {n}" for n in range(1, 6)], "all annotators are excluded"),
    ],
)
def test_unknown_and_all_annotators_are_refused(judgments_file, names, message):
    with pytest.raises(InputError, match=message):
        without_annotators(read_judgments(judgments_file), names)


def test_an_empty_list_is_refused(judgments_file, tmp_path):
    (tmp_path / "out.txt").write_text("\n", "utf-8")
    done = in_process.run("bws-score", str(judgments_file), "--exclude", "out.txt", cwd=tmp_path)
    assert done.returncode == 2
    assert "out.txt: no annotators; expected one per line" in done.stderr


def test_the_page_shows_the_study_without_the_selected_annotators(
    judgments_file, opened, chart_rows
):
    app = opened("--judgments", judgments_file, page="annotation", excluded="#2")
    assert not app.error
    judgments = read_judgments(judgments_file)
    rest = without_annotators(judgments, ["person 2"])
    metrics = {metric.label: metric.value for metric in app.metric}
    for label, data in (("reliability", judgments), ("reliability_without", rest)):
        expected = reliability(data, split="annotation").groups[0].pearson.spearman_brown
        assert metrics[text_of(f"annotation.exclusion_{label}", "en")] == f"{expected:.3f}"
    rows = chart_rows(app, text_of("annotation.exclusion_without", "en"))
    without = dict(zip(score(rest).items, score(rest).score, strict=True))
    assert {row["item"]: row["without"] for row in rows} == pytest.approx(without)
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    (flagged,) = [button for button in app.button if "flagged" in button.label]
    flagged.click().run()
    assert app.query_params["excluded"] in ("#2", ["#2"])


def test_the_list_has_the_names_of_the_file(judgments_file, opened):
    from giccs_app.explorer.study import load

    study = load(judgments=str(judgments_file))
    assert study.annotator_names["#2"] == "person 2"
    comparison = compare_without(study.judgments, ["#2"])
    assert comparison.reliability[1] > comparison.reliability[0]
    assert "person" not in repr(study)
