"""Languages of the site: consent in the language that was shown, questions, direction, and fallback."""

import csv
import io
import logging
import re

import pytest
from sqlalchemy import select

from bws.base.problems import InputError
from mturk.cli.service import _check_catalogues
from mturk.service.site import texts
from mturk.service.site.studies import PanelStudy, read_studies
from mturk.service.store.schema import consent, consent_wording
from tests.mturk.service.site.questions import read_questions
from tests.mturk.service.site.test_participants import command, visit  # noqa: F401
from tests.mturk.test_catalogues import catalogue

WORDING = re.compile(r'name="wording" value="(\w+)"')
HTML = re.compile(r'<html lang="([\w-]+)" dir="(\w+)">')
SPANISH = PanelStudy("pilot", "C0DE", country=False, information={"es": "Sobre usted."})
BOTH = PanelStudy(
    "pilot", "C0DE", country=False, information={"de": "Über Sie.", "en": "About you."}
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder whose catalogues the site uses until the end of the test."""
    monkeypatch.setattr(texts, "_folders", [tmp_path])
    texts.languages.cache_clear()
    yield tmp_path
    texts.languages.cache_clear()


def rows(service, table):
    with service.database.read() as connection:
        return connection.execute(select(table)).all()


def reader(browser, language):
    browser.headers["accept-language"] = language
    return browser


def test_the_consent_is_shown_and_recorded_in_the_language_of_the_information(service, visit):  # noqa: F811
    service.publish()
    english = visit(SPANISH)
    page = english.join(service)
    assert HTML.search(page.text).groups() == ("es", "ltr")
    assert "He leído la información" in page.text
    assert "I have read" not in page.text
    assert 'class="switch"' not in page.text  # there is no other language to choose
    assert english.begin(service).status_code == 200
    [row] = rows(service, consent)
    [wording] = rows(service, consent_wording)
    assert (row.language, wording.language) == ("es", "es")
    assert all(paragraph in page.text for paragraph in wording.text.split("\n\n"))
    exported = next(csv.DictReader(io.StringIO(command(service, "participants"))))
    assert exported["consent_language"] == "es"
    assert HTML.search(english.get("/work/history").text)[1] == "en"  # the site follows the browser


@pytest.mark.parametrize(
    ("study", "accepted", "language"),
    [
        (BOTH, "de-AT", "de"), (BOTH, "es", "en"), (BOTH, "en", "en"), (SPANISH, "de", "es"),
        (PanelStudy("pilot", "C0DE"), "es-MX", "es"), (PanelStudy("pilot", "C0DE"), "cy", "en"),
        (PanelStudy("pilot", "C0DE", information={"es-AR": "A", "de-AT": "B"}), "de-CH", "de-AT"),
        (PanelStudy("pilot", "C0DE", information={"es-AR": "A", "de-AT": "B"}), "en", "es-AR"),
    ],
)  # fmt: skip
def test_the_language_of_the_consent_for_a_reader(folder, study, accepted, language):
    given = study.consent(texts.choose_language(accepted))
    assert given.language == language
    assert given.text.startswith(study.information.get(language, ""))


def test_a_form_shown_in_one_language_is_recorded_in_it_after_a_switch_elsewhere(service, visit):  # noqa: F811
    service.publish()
    anna = reader(visit(BOTH), "de")
    page = anna.join(service)
    assert 'href="/work/start?lang=en"' in page.text
    assert 'href="/work/start?lang=es"' not in page.text
    shown = WORDING.search(page.text)[1]
    assert WORDING.search(anna.get("/work/start?lang=en").text)[1] != shown  # another tab
    assert anna.submit("/work/start", text="/work/start", consent="yes", wording=shown).is_success
    [row] = rows(service, consent)
    assert (row.language, row.digest) == ("de", shown)


def test_a_wording_that_has_changed_since_is_shown_again(service, visit):  # noqa: F811
    service.publish()
    anna = visit(BOTH)
    anna.join(service)
    refused = anna.submit("/work/start", text="/work/start", consent="yes", wording="0" * 64)
    assert refused.status_code == 422
    assert "checked" not in refused.text
    assert rows(service, consent) == []


def test_information_without_a_consent_in_its_language_is_refused_at_the_start(folder):
    path = folder / "studies.toml"
    path.write_text('[a]\ncompletion_code = "C"\n[a.information]\ncy = "Helo"\n', "utf-8")
    message = (
        r"a.information is in cy, but the consent is not \(start.information, start.consent\)"
        r"; expected these texts in cy.po .*check-texts --new cy"
    )
    with pytest.raises(InputError, match=message):
        read_studies(str(path))
    half = {"start__consent": "Rwy'n cytuno."}
    catalogue(folder, "cy", **half)
    with pytest.raises(InputError, match=r"\(start.information\)"):
        read_studies(str(path))
    for information, message in (
        ('welsh = "Helo"', "'welsh' is not a BCP 47 language tag"),
        ('DE = "Hallo"\nde = "Hallo"', "has DE, de; expected each language once"),
        ('de = "Hallo"\nen = " "', "a.information is empty in en; expected a text"),
        ('de = ["Hallo"]', r"4: a.information.de is \['Hallo'\]; expected a text"),
    ):
        path.write_text(f'[a]\ncompletion_code = "C"\n[a.information]\n{information}\n', "utf-8")
        with pytest.raises(InputError, match=message):
            read_studies(str(path))


@pytest.mark.parametrize("country", [True, False])
@pytest.mark.parametrize("volunteers", [True, False])
def test_the_recorded_wording_is_the_one_that_is_shown(service, visit, country, volunteers):  # noqa: F811
    study = PanelStudy("pilot", "C", country=country, volunteers=volunteers, return_url="")
    page = visit(study).join(service)
    for paragraph in study.consent("en").text.split("\n\n"):
        assert f">{paragraph}<" in page.text


def test_a_catalogue_beside_the_studies_is_a_language_of_the_site(folder, service, visit, caplog):  # noqa: F811
    catalogue(
        folder, "cy", start__consent="Rwy'n cytuno.", start__information__no_country="Cedwir."
    )
    (folder / "studies.toml").write_text(
        '[pilot]\ncompletion_code = "C"\ncountry = false\n[pilot.information]\ncy = "Helo"\n',
        "utf-8",
    )
    studies = read_studies(str(folder / "studies.toml"))
    assert texts.languages()["cy"] == "Cymraeg"
    page = reader(visit(*studies), "cy").join(service)
    assert "Cedwir." in page.text
    assert "I do not agree" in page.text  # missing in the catalogue
    with caplog.at_level(logging.INFO, "mturk.server"):
        _check_catalogues()
    assert re.search("nobody has reviewed the translations in .*cy", caplog.text)
    [missing] = [one for one in caplog.records if one.levelname == "WARNING"]
    assert "texts are missing in cy and shown in English" in missing.getMessage()


def test_a_faulty_catalogue_beside_the_studies_is_refused_at_the_start(folder):
    catalogue(folder, "cy", nav__you="Wedi mewngofnodi")
    with pytest.raises(InputError, match=r"nav.you: has the placeholders none; expected {worker}"):
        _check_catalogues()


def test_questions_in_any_language(service, visit):  # noqa: F811
    questions = read_questions(
        [
            {"id": "age"}, {"id": "first_language"},
            {"id": "region", "text": {"es": "¿Dónde vive?", "eu": "Non bizi zara?"}, "type": "choice",
             "choices": [{"value": "n", "es": "Norte"}, {"value": "s", "es": "Sur", "eu": "Hegoa"}]},
        ]
    )  # fmt: skip
    study = PanelStudy("pilot", "C0DE", country=False, information={"es": "A"}, questions=questions)
    page = visit(study).join(service).text
    for words in (
        "¿Cuántos años tiene?",
        "¿Cuál es su lengua materna?",
        "neerlandés",
        "¿Dónde vive?",
    ):
        assert words in page
    other = PanelStudy("pilot", "C0DE", country=False, questions=questions)
    page = reader(visit(other), "de").join(service).text
    assert '<span lang="es" dir="auto">¿Dónde vive?</span>' in page
    assert "Was ist Ihre Erstsprache?" in page
    [age, _, region] = questions
    assert age.label("cy").text == "How old are you (in years)?"
    assert (region.label("eu-ES").text, region.options("eu")["n"].text) == (
        "Non bizi zara?",
        "Norte",
    )


@pytest.mark.parametrize(("tag", "message"), [("spanish", "not a BCP 47"), ("qqq", "Unicode CLDR")])
def test_a_question_in_an_unknown_language_is_refused(tag, message):
    with pytest.raises(ValueError, match=message):
        read_questions([{"id": "x", "text": {tag: "?"}}])


def test_arabic_pages_are_written_from_right_to_left(folder, service, visit):  # noqa: F811
    catalogue(
        folder, "ar", start__consent="أوافق.", start__information__no_country="تُحفظ إجاباتك.",
        work__tasks=("لا مهام", "مهمة واحدة", "مهمتان", "{n} مهام", "{n} مهمة", "{n} مهمة"),
    )  # fmt: skip
    study = PanelStudy("pilot", "C0DE", country=False, information={"ar": "مرحبا"})
    page = visit(study).join(service)
    assert HTML.search(page.text).groups() == ("ar", "rtl")
    counts = [texts.text("ar", "work.tasks", n=n) for n in (0, 1, 2, 3, 11, 100)]
    assert counts == ["لا مهام", "مهمة واحدة", "مهمتان", "3 مهام", "11 مهمة", "100 مهمة"]
    assert texts.duration("ar", 3600)
    assert texts.money("ar", 1)
