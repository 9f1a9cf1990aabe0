"""Metadata: which value of a column belongs to which tuple."""

import json

import pytest

from bws.base.problems import InputError
from bws.files import judgments_from_records
from bws.metadata import Metadata, read_metadata
from bws.records import Judgment


@pytest.fixture(scope="module")
def tuples():
    """Tuples x and y of dialogue d1, z of d2."""
    rows = [
        Judgment(("a", "b"), "a", "b", group="d1", tuple_id="x"),
        Judgment(("b", "c"), "b", "c", group="d1", tuple_id="y"),
        Judgment(("a", "c"), "a", "c", group="d2", tuple_id="z"),
    ]
    return judgments_from_records(rows).tuples


def values(tmp_path, name, text, tuples, *columns):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    result = read_metadata(path).of_tuples(tuples, columns)
    return {column: result[column].tolist() for column in columns}


def test_rows_about_tuples(tmp_path, tuples):
    text = "tuple_id,source\nz,S\nx,W\ny,W\n"
    assert values(tmp_path, "m.csv", text, tuples, "source") == {"source": ["W", "W", "S"]}


def test_rows_about_groups_in_tsv(tmp_path, tuples):
    text = "group\tsource\tn\nd1\tW\t3\nd2\tS\t5\n"
    result = values(tmp_path, "m.tsv", text, tuples, "n", "source")
    assert result == {"n": ["3", "3", "5"], "source": ["W", "W", "S"]}


def test_lists_of_dialogues_have_lengths(tmp_path, tuples):
    lines = [
        {"dialogue_id": "d1", "source": "W", "turns": [{"text": "x"}] * 3},
        {"dialogue_id": "d2", "source": "S", "turns": [{"text": "x"}] * 5},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    result = values(tmp_path, "d.jsonl", text, tuples, "n_turns", "source")
    assert result == {"n_turns": ["3", "3", "5"], "source": ["W", "W", "S"]}


def test_a_field_of_its_own_goes_before_a_length(tmp_path, tuples):
    text = "".join(
        json.dumps({"group": g, "turns": [1, 2], "n_turns": 9}) + "\n" for g in ("d1", "d2")
    )
    assert values(tmp_path, "d.jsonl", text, tuples, "n_turns") == {"n_turns": ["9", "9", "9"]}


def test_a_benchmark_repeats_a_dialogue_with_the_same_values(tmp_path, tuples):
    items = [("d1", "a", 3, 0.5), ("d1", "b", 3, 0.25), ("d2", "a", 5, 1.0)]
    text = "".join(
        json.dumps({"dialogue_id": d, "utterance_id": u, "n_turns": n, "score": s}) + "\n"
        for d, u, n, s in items
    )
    assert values(tmp_path, "b.jsonl", text, tuples, "n_turns") == {"n_turns": ["3", "3", "5"]}
    with pytest.raises(InputError, match=r"b.jsonl:2: dialogue_id 'd1' has score '0.25' here and"):
        values(tmp_path, "b.jsonl", text, tuples, "score")


def test_items_describe_a_tuple_where_they_agree(tmp_path, tuples):
    text = "item,topic,length\na,food,1\nb,food,2\nc,food,3\n"
    assert values(tmp_path, "i.csv", text, tuples, "topic") == {"topic": ["food"] * 3}
    with pytest.raises(InputError, match="items of tuples 'x', 'y', 'z' differ in length"):
        values(tmp_path, "i.csv", text, tuples, "length")


def test_every_tuple_needs_a_row(tmp_path, tuples):
    with pytest.raises(InputError, match="no row for group 'd2' of the judgments"):
        values(tmp_path, "m.csv", "group,source\nd1,W\n", tuples, "source")


def test_unknown_columns_are_named(tmp_path, tuples):
    with pytest.raises(InputError, match="no column sauce; expected one of source"):
        values(tmp_path, "m.csv", "group,source\nd1,W\nd2,S\n", tuples, "sauce")


def test_a_file_without_key_column_is_refused(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("name,source\nd1,W\n")
    with pytest.raises(InputError, match="no key column"):
        read_metadata(path)


def test_keys_are_compared_in_unicode_nfc(tmp_path):
    tuples = judgments_from_records([Judgment(("a", "b"), "a", "b", group="über")]).tuples
    text = "group,source\n u\u0308ber ,W\n"
    assert values(tmp_path, "m.csv", text, tuples, "source") == {"source": ["W"]}


def test_metadata_can_be_made_without_a_file(tuples):
    about = Metadata("mine", "group", (1, 2), {"group": ("d1", "d2"), "source": ("W", "S")})
    assert about.of_tuples(tuples, ["source"])["source"].tolist() == ["W", "W", "S"]
