"""Language of dialogues and benchmark items: tags, reading and writing, the one language of a data set."""

import json
from dataclasses import replace

import polars as pl
import pytest

from bws.base.problems import InputError
from giccs.benchmark import check_benchmark, read_benchmark, write_benchmark
from giccs.benchmark.assemble import assemble, read_dialogues, write_dialogues
from giccs.benchmark.items import Candidate, Dialogue, Turn
from giccs.benchmark.languages import base_language, data_language, language_tag, required_language
from giccs.description.card.tables import items_table

from ..conftest import rows, without_language, write
from .test_release import write_release


def in_languages(*languages):
    turns = (Turn("user", "Hi"), Turn("system", "Hello"))
    return [
        Dialogue(f"d{n}", "", "", turns, (Candidate(f"d{n}-a", "Bye"),), language=tag)
        for n, tag in enumerate(languages)
    ]


@pytest.mark.parametrize(
    ("text", "tag"),
    [("de", "de"), ("EN", "en"), ("pt-br", "pt-BR"), ("zh-hant-TW", "zh-Hant-TW"),
     ("es-419", "es-419"), ("DE-1996", "de-1996"), ("gsw", "gsw")],
)  # fmt: skip
def test_tags_are_written_in_their_usual_case(text, tag):
    assert language_tag(text) == tag


@pytest.mark.parametrize("text", ["", "german", "d", "de_AT", "de-", "de AT", "1de", "de\n"])
def test_text_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="expected a tag such as de, en or pt-BR"):
        language_tag(text)


def test_base_language():
    assert (base_language("pt-BR"), base_language("de")) == ("pt", "de")


def test_dialogues_keep_their_language(tmp_path):
    dialogues = in_languages("pt-BR", None)
    write_dialogues(dialogues, tmp_path / "d.jsonl")
    assert read_dialogues(tmp_path / "d.jsonl") == dialogues
    first, second = map(json.loads, (tmp_path / "d.jsonl").read_text("utf-8").splitlines())
    assert first["language"] == "pt-BR"
    assert "language" not in second
    items = assemble(dialogues, {("d0", "d0-a"): 0.5, ("d1", "d1-a"): 0.5})
    assert [item.language for item in items] == ["pt-BR", None]


def test_items_keep_their_language_which_is_not_in_the_fingerprint(tmp_path):
    plain = read_benchmark(write(tmp_path / "p.jsonl", without_language(rows(dialogues=2))))
    lines = [line | {"language": "DE-at"} for line in rows(dialogues=2)]
    stated = read_benchmark(write(tmp_path / "s.jsonl", lines))
    assert {item.language for item in stated.items} == {"de-AT"}
    assert stated.warnings == ()
    assert stated.fingerprint == plain.fingerprint
    write_benchmark(stated.items, tmp_path / "again.jsonl")
    assert read_benchmark(tmp_path / "again.jsonl").items == stated.items
    write_benchmark(plain.items, tmp_path / "again.jsonl")
    assert "language" not in (tmp_path / "again.jsonl").read_text("utf-8")


@pytest.mark.parametrize("value", ["german", 7, ["de"]])
def test_a_wrong_language_is_reported_with_its_line(tmp_path, value):
    lines = [*rows(dialogues=2)]
    lines[2] |= {"language": value}
    lines[2] |= {"dialogue_id": "own"}
    _, problems = check_benchmark(write(tmp_path / "b.jsonl", lines))
    assert [problem.line for problem in problems] == [3]
    assert "expected a BCP 47 language tag" in problems[0].message


def test_items_of_a_dialogue_share_their_language(tmp_path):
    lines = without_language(rows(dialogues=2))
    lines[2] |= {"language": "de"}
    _, problems = check_benchmark(write(tmp_path / "b.jsonl", lines))
    assert "source, domain or language differ from those of dialogue d0" in problems[0].message


def test_language_is_a_column_of_the_published_table(tmp_path):
    items = [replace(item, language="en") for item in read_benchmark("giccs-sample").items]
    table = items_table(items)
    assert set(table.frame["language"]) == {"en"}
    path = tmp_path / "data" / "test-00000-of-00001.parquet"
    path.parent.mkdir()
    path.write_bytes(table.content)
    assert list(read_benchmark(tmp_path).items) == items
    assert "language" not in items_table([replace(item, language=None) for item in items]).frame
    assert pl.read_parquet(path)["language"].dtype == pl.String


def test_the_release_and_the_sample_are_german(tmp_path):
    for data in (write_release(tmp_path), "giccs-sample"):
        assert {item.language for item in read_benchmark(data).items} == {"de"}


@pytest.mark.parametrize(
    ("languages", "option", "language"),
    [
        (["de", "de"], None, "de"),
        ([None, None], None, None),
        ([None, None], "en", "en"),
        (["de", None], "de", "de"),
        (["pt-BR"], "pt", "pt-BR"),
        (["pt-BR", "pt-PT"], None, "pt"),
    ],
)
def test_one_language_of_a_data_set(languages, option, language):
    assert data_language(in_languages(*languages), "d.jsonl", option) == language


@pytest.mark.parametrize(
    ("languages", "option", "message"),
    [
        (["de", "en"], None, r"d\.jsonl: several languages \(de: 1, en: 1\)"),
        (["de", None], None, r"some of the data state no language \(de: 1, not stated: 1\)"),
        (["de"], "en", r"the language of the data is de: 1, but --language is en"),
        (["de"], "de-AT", "but --language is de-AT"),
    ],
)
def test_contradicting_languages_are_an_error(languages, option, message):
    with pytest.raises(InputError, match=message):
        data_language(in_languages(*languages), "d.jsonl", option)


def test_a_missing_language_is_an_error_where_it_is_needed():
    with pytest.raises(InputError) as caught:
        required_language(in_languages(None), "d.jsonl", None, "prompts")
    assert str(caught.value) == (
        "d.jsonl: the data state no language, and prompts depend on it; "
        "expected --language, such as --language de"
    )
