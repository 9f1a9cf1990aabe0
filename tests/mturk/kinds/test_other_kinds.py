"""A kind of HIT registered by the entry point of another distribution, end to end."""

import csv
import json
import sys
from pathlib import Path

import pytest

from mturk import kinds
from mturk.kinds import get_kind, registry
from mturk.kinds.registry import kind_names

METADATA = Path(__file__).with_name("example")
EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "giccs-plugin"
SENTENCES = "id,sentence\ns1,The cat sleeps.\ns2,Cat the <b>sleeps</b>.\ns3,Sleeps cat.\n"
TRUTH = "item,group,score\ns1,,1\ns2,,-1\ns3,,0\n"


def forget():
    registry.kind_locations.cache_clear()
    get_kind.cache_clear()
    sys.modules.pop("acceptability", None)


@pytest.fixture
def acceptability(monkeypatch):
    monkeypatch.syspath_prepend(METADATA)
    monkeypatch.syspath_prepend(EXAMPLE)
    forget()
    yield "acceptability"
    monkeypatch.undo()
    forget()


def test_kind_of_other_distribution_is_registered(acceptability):
    assert kind_names() == (
        "tuples", "conditions", "items", "relabel", "verification", "acceptability",
    )  # fmt: skip
    assert get_kind("acceptability").package == "acceptability"
    assert get_kind("acceptability").part == "sentence"


def test_kind_of_other_distribution_end_to_end(acceptability, study):
    table, truth = study.file("sentences.csv", SENTENCES), study.file("truth.csv", TRUTH)
    config = study.file(
        "hits.toml", 'kind = "acceptability"\ndialogue_language = "en"\napproval_rate_above = -1\n'
    )
    ledger = ["--ledger", study.ledger]
    price = json.loads(study.run("estimate", table, "--config", config, "--json"))
    assert (price["hits"], price["assignments"]) == (2, 4)
    study.run("publish", table, "--config", config, "--endpoint", study.url, *ledger)
    done = json.loads(study.simulate("--truth", truth, "--workers", "2", "--json"))
    assert done["counts"]["submitted"] == 4
    status = json.loads(study.run("status", *ledger, "--json"))
    assert status["tuples"]["judgments"] == {"s1": 2, "s2": 2, "s3": 2}
    output = study.folder / "ratings.csv"
    assert "6 ratings by 2 annotators" in study.run("collect", *ledger, "-o", output)
    rows = list(csv.DictReader(output.read_text("utf-8").splitlines()))
    assert sorted({(row["id"], row["rating"]) for row in rows}) == [
        ("s1", "5"), ("s2", "1"), ("s3", "3"),
    ]  # fmt: skip
    batch = study.run("batch", *ledger, "-o", "-")
    assert '"Answer.1.rating","Answer.1.seconds"' in batch.splitlines()[0]


def test_service_uses_validation_of_kind(acceptability):
    asked = [kinds.ExpectedTuple("s1", "", ("A.",), "acceptability")]
    assert kinds.find_problems(asked, [("rating-s1", "3")]) == []
    assert kinds.find_problems(asked, [("rating-s1", "6")]) == [
        "s1: the rating is '6'; expected one of 1, 2, 3, 4, 5"
    ]


def test_texts_and_settings_of_other_kind_are_printed(acceptability, study):
    config = study.run("estimate", "--default-config", "tuples")
    assert "language_check" in config
    from mturk.study.settings_file import default_toml

    assert "language_check" not in default_toml("acceptability")


def test_kind_without_distribution_is_unknown():
    forget()
    assert "acceptability" not in kind_names()
    with pytest.raises(
        ValueError,
        match="kind is 'acceptability'; expected tuples, conditions, items, relabel or verif",
    ):
        get_kind("acceptability")


def register(folder, name, value):
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mturk.kinds]\n{name} = {value}\n")


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        (
            "tuples",
            "acceptability:KIND",
            ValueError,
            "tuples = 'acceptability:KIND' repeats a kind",
        ),
        ("songs", "json:dumps", TypeError, "json:dumps is a function; expected a HitKind"),
    ],
)
def test_invalid_entry_points_are_refused(tmp_path, monkeypatch, name, value, error, message):
    register(tmp_path, name, value)
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    with pytest.raises(error, match=message):
        get_kind(name)
    monkeypatch.undo()
    forget()
