"""Lemmas: those of German are right, their maker is named, and impostors are not believed."""

import json
import sys

import pytest

from giccs.description.lemmas import lemmatiser, supported_languages
from tests.nightly import others_nightly

from ..deferred import Deferred, requires

pytestmark = requires("spacy", "simplemma")
spacy = Deferred("spacy")


@pytest.fixture(scope="module")
def german():
    return lemmatiser("de")


def of(tables, *texts):
    return [*tables.lemmas(texts)]


def test_forms_of_one_verb_are_one_lemma(german):
    if "simplemma" not in german.name:
        pytest.skip("a trained German model is installed")
    result = of(
        german,
        "Ich gehe heute.",
        "Gestern ging er.",
        "Geht ihr?",
        "Sie sind gegangen.",
        "Du gingst.",
    )
    assert [sum(word == "gehen" for word in text) for text in result] == [1] * 5


@pytest.mark.parametrize(
    ("text", "lemmas"),
    [
        ("Gibt es das? Es gab keins.", ["geben", "es", "der", "es", "geben", "kein"]),
        ("Schöne Häuser, das schönste Haus!", ["schön", "haus", "der", "schön", "haus"]),
        ("Soll ich das Essen bestellen?", ["sollen", "ich", "der", "essen", "bestellen"]),
        ("„Hast du Tische frei?“", ["haben", "du", "tisch", "frei"]),
        ("Ein Tisch, in einem der Kinos", ["ein", "tisch", "in", "ein", "der", "kino"]),
    ],
)
def test_the_tables_know_german(german, text, lemmas):
    if "simplemma" not in german.name:
        pytest.skip("a trained German model is installed")
    assert of(german, text) == [lemmas]


def test_punctuation_and_lone_symbols_are_no_words_and_numbers_are(german):
    assert of(german, " … – „ “ € & !? ", "Um 20:15 für 3 €.") == [[], ["um", "20:15", "für", "3"]]


def test_each_text_has_its_own_lemmas_in_their_order(german):
    texts = [f"ein Haus {k}" if k % 3 else "" for k in range(1500)]  # more than a batch of spaCy's
    assert of(german, *texts) == [["ein", "haus", str(k)] if k % 3 else [] for k in range(1500)]


def test_sharp_s_stays(german):
    assert of(german, "die Maße, die Masse")[0][1::2] == ["maß", "masse"]


def test_other_languages_have_tables_too():
    english = lemmatiser("en")
    assert english.lang == "en"
    if "simplemma" in english.name:
        assert english.name.startswith("spaCy blank en with simplemma ")
        assert of(english, "She went there. Mice go!") == [["she", "go", "there", "mouse", "go"]]


@pytest.mark.parametrize(
    ("lang", "form", "lemma"),
    others_nightly(
        [("nl", "huizen", "huis"), ("fr", "maisons", "maison"), ("ru", "книги", "книга")],
        ("nl", "huizen", "huis"),
    ),
)
def test_the_tables_are_those_of_the_language(lang, form, lemma):
    assert lang in supported_languages()
    result = lemmatiser(lang)
    if "simplemma" in result.name:
        assert of(result, f"1 {form}, {form}") == [["1", lemma, lemma]]


@pytest.mark.parametrize("lang", ["tlh", "", "DE", "de_DE", "../de"])
def test_a_language_without_tables_is_refused_with_those_that_have_some(lang):
    with pytest.raises(ValueError, match=r"lang is .*; expected one of ar, bg, .*de, .*uk"):
        lemmatiser(lang)


def install(folder, version="3.8.0", meta=None):
    """Lay a package as pip installs spaCy's: metadata, a module, and a pipeline as spaCy writes it.

    It stands for de_core_news_sm, which cannot be had here: its only part knows two words. The module
    fails when it is imported.
    """
    nlp = spacy.blank("de")
    for form in ("ging", "geht"):
        ruler = (
            nlp.get_pipe("attribute_ruler") if nlp.pipe_names else nlp.add_pipe("attribute_ruler")
        )
        ruler.add([[{"LOWER": form}]], {"LEMMA": "GEHEN"})
    nlp.meta |= {"name": "core_news_sm", "version": version}
    package = folder / "de_core_news_sm"
    data = package / f"de_core_news_sm-{version}"
    package.mkdir()
    nlp.to_disk(data)
    written = json.loads((data / "meta.json").read_text("utf-8"))
    (data / "meta.json").write_text(json.dumps(written | (meta or {})), "utf-8")
    (package / "__init__.py").write_text("raise SystemExit('this package ran')", "utf-8")
    info = folder / f"de_core_news_sm-{version}.dist-info"
    info.mkdir()
    about = f"Metadata-Version: 2.1\nName: de_core_news_sm\nVersion: {version}\n"
    (info / "METADATA").write_text(about, "utf-8")
    return data


def test_a_trained_model_is_used_and_named_and_none_of_its_code_runs(tmp_path, monkeypatch):
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    trained = lemmatiser("de")
    assert trained.name == "spaCy de_core_news_sm 3.8.0"
    assert trained.remarks == ()
    assert of(trained, "Er ging. Geht sie?") == [["er", "gehen", "gehen", "sie"]]
    assert "de_core_news_sm" not in sys.modules


@pytest.mark.parametrize(
    ("version", "meta"),
    [
        ("999.9.9", {}),
        ("3.8.0", {"lang": "en"}),
        ("3.8.0", {"name": "core_news_lg"}),
        ("3.8.0", {"version": "3.7.0"}),
    ],
)
def test_what_only_has_the_name_of_a_model_is_not_used_and_that_is_said(
    tmp_path, monkeypatch, version, meta
):
    install(tmp_path, version, meta)
    monkeypatch.syspath_prepend(tmp_path)
    tables = lemmatiser("de")
    assert tables.name.startswith("spaCy blank de with simplemma ")
    said = f"de_core_news_sm {version} is installed but is not a model of spaCy; ignored"
    assert tables.remarks == (said,)
    assert "de_core_news_sm" not in sys.modules


def test_a_package_without_a_model_in_it_is_not_used(tmp_path, monkeypatch):
    data = install(tmp_path)
    (data / "meta.json").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    assert "simplemma" in lemmatiser("de").name
