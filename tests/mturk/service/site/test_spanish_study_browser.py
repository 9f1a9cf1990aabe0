"""A study in Spanish from giccs init to the withdrawal: every page is in Spanish, and axe finds nothing."""

import csv
import io
import time

import pytest
from click.testing import CliRunner

from giccs_app.cli import main as giccs
from mturk.catalogues import translate, translations
from mturk.catalogues.source import source_texts
from mturk.service.server import ServerOptions
from mturk.service.site import texts
from mturk.service.site.links import study_link
from mturk.service.site.studies import read_studies
from tests.mturk.service.running import running
from tests.mturk.service.site.test_accessibility import AXE, violations

STUDIES = """\
[piloto]
completion_code = "C0DIGO"
screened_out_code = "FU3RA"
no_consent_code = "N0"
title = "¿Qué enunciado se parece más?"
country = true
hits = 2
[piloto.information]
es = "Estudiamos cuánto se parecen los enunciados."
[[piloto.questions]]
id = "age"
minimum = 18
[[piloto.questions]]
id = "first_language"
[[piloto.questions]]
id = "dialecto"
text = { es = "¿Habla usted un dialecto?" }
type = "choice"
choices = [{ value = "yes", es = "Sí" }, { value = "no", es = "No" }]
"""
MIN_CHARACTERS = 12
"""Length of English texts that are searched in pages; shorter ones occur in other words."""


def call(*arguments):
    done = CliRunner().invoke(giccs, list(map(str, arguments)), prog_name="giccs")
    assert done.exit_code == 0, (done.output, done.exception)
    return done


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A service with a published study, both set up by the commands of the README of `giccs init`."""
    monkeypatch.setattr(texts, "_folders", [])
    call("init", tmp_path / "estudio", "--language", "es")
    monkeypatch.chdir(tmp_path / "estudio")
    (tmp_path / "estudio" / "studies.toml").write_text(STUDIES, "utf-8")
    call("import", "dialogues.csv", "--id", "id", "--context", "turn1,turn2", "--target", "target",
         "--candidates", "candidate1,candidate2,candidate3,candidate4,candidate5", "--language", "es",
         "-o", "dialogues.jsonl")  # fmt: skip
    call("design", "dialogues.jsonl", "-k", "3", "--tuples", "10", "-o", "tuples.csv")
    options = ServerOptions(port=0, studies=read_studies("studies.toml"))
    with running(tmp_path, options, start=time.time()) as service:
        published = call("annotate", "publish", "tuples.csv", "--dialogues", "dialogues.jsonl",
                         "--config", "hits.toml", "--endpoint", service.api, "--yes")  # fmt: skip
        assert "nobody has reviewed the translation of the page in es" in published.stderr
        yield service
    texts.languages.cache_clear()


def english_texts():
    spanish = translations("es")
    return [
        text
        for key, text in source_texts().items()
        if len(text) >= MIN_CHARACTERS and "|" not in text and "{" not in text
        and translate(spanish, key, text) != text
    ]  # fmt: skip


def check(page, seen):
    """Check that a page and its frame are in Spanish, and their accessibility."""
    for frame in page.frames:
        frame.wait_for_load_state()
        assert frame.evaluate("document.documentElement.lang") == "es"
        content = frame.evaluate("document.documentElement.textContent")
        assert [text for text in english_texts() if text in content] == []
        assert not AXE.exists() or violations(frame) == []
    seen.append(page.url)


def enter(service, page, digit):
    link = study_link(service.site, service.database.secret(), "piloto")
    page.goto(f"{link}?PROLIFIC_PID={digit * 24}&STUDY_ID=s&SESSION_ID={digit}")


def consent(page, age):
    page.get_by_role("checkbox", name="He leído la información").check()
    page.get_by_label("¿En qué país vive?").select_option(label="España")
    page.get_by_label("¿Cuántos años tiene?").fill(age)
    page.get_by_label("¿Cuál es su lengua materna?").select_option(label="español")
    page.get_by_role("radio", name="Sí").check()
    page.get_by_role("button", name="Empezar").click()


def answer(page):
    frame = page.frame_locator("#question")
    for part in range(2):
        for choice, index in (("best", 0), ("worst", 1)):
            frame.locator(f"#answers fieldset.{choice}").nth(part).locator("input").nth(
                index
            ).check()
    frame.locator("[data-role=check] input").first.check()
    frame.get_by_role("button", name="Enviar respuestas").click()


def test_a_study_in_spanish_from_init_to_withdrawal(study, open_page):
    page, seen = open_page(locale="es-ES"), []
    if AXE.exists():
        page.add_init_script(path=AXE)
    enter(study, page, "a")
    page.get_by_role("button", name="No acepto").click()
    page.get_by_role("heading", name="No participa en el estudio").wait_for()
    check(page, seen)
    enter(study, page, "b")
    consent(page, "17")
    page.get_by_role("heading", name="Gracias por su interés").wait_for()
    check(page, seen)

    enter(study, page, "c")
    page.get_by_role("heading", name="¿Qué enunciado se parece más?").wait_for()
    check(page, seen)
    page.locator("form.card").evaluate("form => { form.noValidate = true; }")
    page.get_by_role("button", name="Empezar").click()
    page.get_by_text("No puede participar sin dar su consentimiento.").wait_for()
    check(page, seen)
    consent(page, "30")
    page.wait_for_url("**/work/assignment/*")
    page.frame_locator("#question").get_by_text("¿qué palabra va en el hueco?").wait_for()
    check(page, seen)
    first = page.url
    answer(page)
    page.wait_for_url(lambda url: "/work/assignment/" in url and url != first)
    page.get_by_text("Tarea 2 de 2").wait_for()
    check(page, seen)
    answer(page)
    page.get_by_role("heading", name="¡Ha terminado, gracias!").wait_for()
    assert page.locator("code").inner_text() == "C0DIGO"
    check(page, seen)
    for name in ("Mi progreso", "Mensajes"):
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("heading", name=name).wait_for()
        check(page, seen)
    page.get_by_label("Asunto").fill("Una pregunta")
    page.get_by_label("Mensaje", exact=True).fill("¿Cuándo se publica?")
    page.get_by_role("button", name="Enviar mensaje").click()
    page.get_by_text("Su mensaje se ha enviado.").wait_for()
    page.goto(f"{study.site}/work/nowhere")
    page.get_by_role("heading", name="Página no encontrada").wait_for()
    check(page, seen)
    page.get_by_role("link", name="Retirarse").click()
    page.get_by_text("Esto no se puede deshacer.").wait_for()
    check(page, seen)
    page.get_by_role("button", name="Borrar mis respuestas").click()
    page.get_by_role("heading", name="Se ha retirado del estudio").wait_for()
    check(page, seen)
    assert len(seen) == 12

    db = study.database.url.database
    rows = list(csv.DictReader(io.StringIO(call("annotate", "participants", "--db", db).stdout)))
    consents = {row["participant_id"][0]: row["consent_language"] for row in rows}
    assert consents == {"b": "es", "c": "es"}


def test_the_page_of_a_task_keeps_the_language_of_its_study(study, open_page):
    page = open_page(locale="de-DE")
    enter(study, page, "d")
    consent(page, "30")  # in Spanish, the only language of the information
    page.wait_for_url("**/work/assignment/*")
    page.frame_locator("#question").locator("html[lang=es]").wait_for()
    assert page.locator("html").get_attribute("lang") == "de"
    page.get_by_role("button", name="Zurückgeben").wait_for()
