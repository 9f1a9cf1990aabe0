"""The annotation page, run by Streamlit's own app tester, on files and on the ledger of a study."""

import csv
import json
from importlib import resources

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")
pytest.importorskip("boto3", reason="the extra giccs[study] is not installed")

import streamlit

from bws.components import generalisability
from bws.planning import Planner, describe_annotation_needs
from bws.raw_agreement import annotator_pairs
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.study import load

HOSTILE = "<script>alert(1)</script> **bold** $x$ [a](http://example.org) `c` :red[r]"


@pytest.fixture
def opened(opened):
    def open_page(*arguments, **parameters):
        return opened(*arguments, **{"page": "annotation"} | parameters)

    return open_page


@pytest.fixture
def seen(seen):
    return lambda *arguments, **link: seen(*arguments, **{"page": "annotation"} | link)


def checked(app):
    assert not app.exception, app.exception[0].message
    return app


def texts(app):
    """All that stands on the page outside of tables."""
    kinds = ("caption", "markdown", "info", "warning", "error", "text", "subheader")
    return [one.value for kind in kinds for one in getattr(app, kind)]


def numbers(app):
    return {metric.label: metric.value for metric in app.metric}


def linked(app, name):
    """What stands in the link; the tester gives a list where it was set from outside."""
    value = app.query_params[name]
    return value if isinstance(value, str) else value[-1]


def table(app, *columns):
    """The first table with these columns."""
    result = [one.value for one in app.dataframe if set(columns) <= set(one.value.columns)]
    assert result, [list(one.value.columns) for one in app.dataframe]
    return result[0]


def bars(app, *fields):
    """The data of the first chart with these fields."""
    for chart in app.get("vega_lite_chart"):
        spec = json.loads(chart.proto.spec)
        if all(f'"{field}' in json.dumps(spec) for field in fields):
            return spec
    raise AssertionError(f"no chart of {fields}")


def sample_rows():
    path = resources.files("giccs.data") / "judgments.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def judgments_file(folder, rows):
    path = folder / "judgments.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_sample_is_complete_and_called_simulated(seen):
    app = seen()
    assert any("simulated annotators" in message for message in texts(app))
    assert list(numbers(app).items())[:3] == [
        ("Judgments", "3,000"),
        ("Complete tuples", "600 of 600"),
        ("Annotators", "5"),
    ]
    frame = table(app, "annotator", "compliance")
    assert list(frame["judgments"]) == [600] * 5
    assert frame["majority"].between(0.5, 1).all()
    assert text_of("annotation.no_seconds", "en") in texts(app)
    assert text_of("annotation.no_times", "en") in texts(app)
    assert text_of("annotation.no_comments", "en") in texts(app)
    bars(app, "place", "expected")
    assert table(app, "pearson", "spearman_full")["annotations"].tolist() == [3000] * 2
    agreed = table(app, "alpha_both", "observed_both", "strong_worst")
    assert 0 < agreed["alpha_both"][0] < 1  # the interval is in the text that is shown


def test_more_judgments_can_be_wanted_and_the_link_says_so(opened):
    app = opened()
    checked(app.number_input(key="wanted").set_value(6).run())
    assert numbers(app)["Complete tuples"] == "0 of 600"
    assert len(table(app, "tuple", "missing")) == 500
    assert linked(app, "wanted") == "6"
    again = opened(wanted="6")
    assert again.number_input(key="wanted").value == 6
    assert numbers(again)["Complete tuples"] == "0 of 600"


def test_a_file_with_times_comments_and_real_ids(opened, tmp_path):
    rows = [
        row | {
            "annotator": row["annotator"].replace("simulated-", "AREAL"),
            "seconds": "1" if row["annotator"].endswith("1") else "9.5",
            "comment": HOSTILE if number == 7 else "",
            "assignment_id": f"a{number}",
        }
        for number, row in enumerate(sample_rows())
    ]  # fmt: skip
    app = opened("--judgments", judgments_file(tmp_path, rows[:-2]))
    assert numbers(app)["Complete tuples"] == "599 of 600"
    assert table(app, "tuple", "missing").values.tolist() == [["t600", 3, 2]]
    frame = table(app, "annotator", "compliance")
    assert sorted(frame["annotator"]) == [f"#{n}" for n in range(1, 6)]
    assert "AREAL" not in str(texts(app)) + frame.to_csv()
    assert any("5 annotators have no pseudonym " in message for message in texts(app))
    first = frame.iloc[0]
    assert (first["annotator"], list(first["flags"]), first["seconds"]) == (
        "#1",
        ["fast"],
        1,
    )
    assert "1 of 5 annotators are flagged" in " ".join(texts(app))
    bars(app, "low", "high", "judgments")
    assert table(app, "comment")["comment"].tolist() == [HOSTILE]
    assert not any("alert" in message for message in texts(app))
    assert len(checked(app.text_input(key="comments").set_value("BOLD").run()).dataframe) == 5
    assert table(app, "comment")["comment"].tolist() == [HOSTILE]
    checked(app.text_input(key="comments").set_value(".*").run())
    assert table(app, "comment").empty
    assert linked(app, "comments") == ".*"


def test_a_file_without_names_and_orders(opened, tmp_path):
    keep = ("tuple_id", "group", "item1", "item2", "item3", "best", "worst")
    rows = [{name: row[name] for name in keep} for row in sample_rows()]
    app = opened("--judgments", judgments_file(tmp_path, rows))
    assert text_of("annotation.no_annotators", "en") in texts(app)
    assert text_of("annotation.no_shown", "en") in texts(app)


def test_without_judgments_it_says_what_to_do(opened, tmp_path):
    data = tmp_path / "benchmark.jsonl"
    data.write_bytes((resources.files("giccs.data") / "benchmark.jsonl").read_bytes())
    app = opened("--data", data)
    assert any("--ledger" in one.value for one in app.info)
    assert not app.metric


def test_it_speaks_german(seen):
    app = seen(lang="de")
    assert "Positionseffekt" in [one.value for one in app.subheader]
    assert app.number_input(key="wanted").label == "Angeforderte Urteile pro Tupel"
    assert "Vollständige Tupel" in numbers(app)
    assert "Anteil" in json.dumps(bars(app, "place", "expected"), ensure_ascii=False)
    assert {*table(app, "split", "items")["split"]} == {"nach Annotationen", "nach Annotierenden"}


def test_a_running_study_is_followed(opened, study):
    app = opened("--ledger", study.path)
    assert numbers(app)["Judgments"] == "0"
    assert text_of("annotation.none_collected", "en") in texts(app)
    assert text_of("annotation.no_judgments", "en") in texts(app)
    study.submit_all(["AALICE1", "ABERND1"], comment=HOSTILE)
    study.collect()
    checked(app.button(key="refresh").click().run())
    wanted = study.settings.assignments
    assert numbers(app)["Judgments"] == "8"
    assert numbers(app)["Complete tuples"] == "0 of 4"
    assert (
        numbers(app)["Judgments per hour"] == "80"
    )  # 4 in the 3 minutes from the first to the last
    assert table(app, "tuple", "missing")["missing"].tolist() == [wanted - 2] * 4
    assert "4 waiting for review" in app.text[0].value
    assert all(name.startswith("w-") for name in table(app, "annotator", "compliance")["annotator"])
    bars(app, "time", "judgments")
    bars(app, "place", "expected")
    assert table(app, "comment")["comment"].tolist() == [HOSTILE] * 4
    assert not any("alert" in message for message in texts(app))
    assert not any("Simulated annotators" in message for message in texts(app))


def test_it_looks_again_by_itself_only_where_that_is_switched_on(opened, study, monkeypatch):
    asked, fragment = [], streamlit.fragment

    def noted(function, run_every):
        asked.append(run_every)
        return fragment(function, run_every=run_every)

    monkeypatch.setattr(streamlit, "fragment", noted)
    app = opened("--ledger", study.path)
    assert not app.toggle(key="live").value
    checked(app.toggle(key="live").set_value(True).run())
    assert linked(app, "live") == "yes"
    assert opened("--ledger", study.path, live="yes").toggle(key="live").value
    assert asked == [None, 10, 10]


def test_file_or_ledger_can_be_chosen_where_both_are_there(opened, study, tmp_path):
    study.submit("AALICE1", study.hit_ids()[0])
    study.collect()
    app = opened("--ledger", study.path)  # the sample has judgments of its own
    assert numbers(app)["Judgments"] == "2"
    checked(app.segmented_control(key="source").set_value("file").run())
    assert numbers(app)["Judgments"] == "3,000"
    assert linked(app, "source") == "file"
    assert numbers(opened("--ledger", study.path, source="file"))["Judgments"] == "3,000"


def test_simulated_workers_are_called_so(opened, study):
    study.submit("ASIMULATED1", study.hit_ids()[0])
    study.collect()
    app = opened("--ledger", study.path)
    assert text_of("annotation.simulated", "en") in texts(app)


@pytest.mark.parametrize("content", [None, b"no database"])
def test_a_broken_ledger_is_a_sentence(opened, tmp_path, content):
    path = tmp_path / "broken.db"
    if content:
        path.write_bytes(content)
    app = opened("--ledger", path)
    assert "broken.db" in app.error[0].value


def test_pairs_of_annotators_are_a_matrix(seen, chart_rows):
    rows = chart_rows(seen(), "tuples of both")
    pairs = annotator_pairs(load().judgments)
    assert len(rows) == 20
    assert [row["first"] for row in rows[::4]] == list(pairs.annotators)
    assert rows[0]["agreement"] == pairs.agreement[0, 1]


def test_annotators_without_common_tuples_are_not_compared(opened, tmp_path):
    rows = [
        row for n, row in enumerate(sample_rows()) if row["annotator"] == f"simulated-{n % 5 + 1}"
    ]
    single = list({row["tuple_id"]: row for row in rows}.values())
    app = opened("--judgments", judgments_file(tmp_path, single))
    for reason in (
        "no two named annotators judged the same tuple",
        "no tuple has two judgments; expected at least one for a reliability curve",
    ):
        assert any(reason in text for text in texts(app))
        assert local_remark(reason, "de") != reason


@pytest.mark.parametrize("target", [0.9, 0.95])
def test_the_target_of_the_link_is_drawn_and_its_annotations_are_stated(opened, chart_rows, target):
    app = opened(target=str(target))
    rows = chart_rows(app, "predicted")
    lines = [row for row in rows if row["correlation"] == f"target {target}"]
    assert [row["value"] for row in lines] == [target]
    study = generalisability(load().judgments.canonical)
    planner = Planner.from_study(load().judgments.canonical, study)
    needs = describe_annotation_needs(target, planner)
    assert str(target) in needs
    assert any(needs in each for each in texts(app))
    assert local_remark(needs, "de").startswith("mit den vorhandenen Tupeln")


def test_variance_components_are_those_of_the_command(seen, chart_rows):
    rows = chart_rows(seen(lang="de"), "Varianz eines Urteils")
    study = generalisability(load().judgments.canonical)
    assert [row["value"] for row in rows] == [each.value for each in study.variances.values()]
    assert rows[0]["component"] == "Items"


@pytest.mark.parametrize(
    ("language", "text"), [("en", "300 items were annotated"), ("de", "300 Items wurden mit")]
)
def test_the_paragraph_for_a_paper_is_in_the_language_of_the_page(opened, language, text):
    app = opened(page="annotation", lang=language)
    (code,) = [each.value for each in app.code if text in each.value]
    assert "[@krippendorff2018]" in code
    assert "@book{krippendorff2018," in code
    other = opened(page="annotation", lang=language, paragraph="en" if language == "de" else "de")
    assert not [each for each in other.code if text in each.value]
