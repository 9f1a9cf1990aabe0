"""Catalogues: complete and consistent in the package, checked from a folder, with a visible fallback."""

import re

import pytest
from babel.messages.plurals import get_plural
from click.testing import CliRunner

from bws.base.problems import InputError
from mturk import catalogues
from mturk.catalogues import PACKAGE_FOLDER, is_translated, locale, read_catalogue, source
from mturk.cli import main
from mturk.kinds.texts import built_in_texts, read_built_in_file
from mturk.study.settings_file import read_settings

LANGUAGES = sorted(path.stem for path in PACKAGE_FOLDER.glob("*.po"))


def run(*arguments, code=0):
    done = CliRunner().invoke(main, ["check-texts", *map(str, arguments)])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def catalogue(folder, language, **translations):
    """Write a catalogue with some translations, by key with __ instead of a dot; return its path."""
    catalog = source.new_catalogue(language)
    for message in catalog:
        if (key := (message.context or "").replace(".", "__")) in translations:
            message.string = translations.pop(key)
    assert not translations
    path = folder / f"{language}.po"
    path.write_text(source.catalogue_text(catalog), "utf-8")
    return path


@pytest.mark.parametrize("language", LANGUAGES)
def test_catalogues_of_the_package_are_complete_and_have_all_placeholders_and_plural_forms(
    language,
):
    package = read_catalogue(PACKAGE_FOLDER / f"{language}.po")
    assert source.missing_texts(language) == []
    assert source.catalogue_problems(package) == []
    plural = get_plural(locale(language))
    assert (package.catalog.num_plurals, package.catalog.plural_expr) == (
        plural.num_plurals, plural.plural_expr,
    )  # fmt: skip
    forms = [message.string for message in package.catalog if message.pluralizable]
    assert forms
    assert {len(strings) for strings in forms} == {plural.num_plurals}


@pytest.mark.parametrize("language", LANGUAGES)
def test_make_catalogues_changes_nothing(language):
    path = PACKAGE_FOLDER / f"{language}.po"
    catalog = read_catalogue(path).catalog
    source.update_catalogue(catalog)
    assert source.catalogue_text(catalog) == path.read_text("utf-8")


def test_german_is_reviewed_and_a_new_catalogue_is_not(tmp_path):
    assert read_catalogue(PACKAGE_FOLDER / "de.po").reviewer
    new = run("--new", "cs", "-o", tmp_path / "cs.po")
    assert new.stdout == ""
    czech = read_catalogue(tmp_path / "cs.po")
    assert czech.reviewer == ""
    assert "Czech" in czech.catalog.header_comment
    assert czech.catalog.num_plurals == 3
    assert len(source.missing_texts("cs", (tmp_path,))) == len(source.source_texts())


@pytest.mark.parametrize(
    ("key", "translation", "message"),
    [
        ("nav__you", "Wedi mewngofnodi", "has the placeholders none; expected {worker}"),
        ("work__about", "tua {amser}", "has the placeholders {amser}; expected {time}"),
        ("work__tasks", ("{n} tasg", "un dasg", "", "", "{tasg}"), "has the placeholders {tasg}"),
        ("tuples__hit__title", "x" * 129, "hit.title: Title has 129 characters"),
        ("tuples__hit__title", " ", "hit.title is empty"),
    ],
)
def test_faults_of_a_catalogue_are_named(tmp_path, key, translation, message):
    path = catalogue(tmp_path, "cy", **{key: translation})
    done = run(path, code=2)
    assert message in done.stderr
    assert str(path) in done.stderr


def test_a_plural_form_may_leave_out_the_number_only(tmp_path):
    forms = ("{n} tasg", "un dasg", "dwy dasg", "{n} tasg", "{n} tasg")
    assert "missing work.tasks:" not in run(catalogue(tmp_path, "cy", work__tasks=forms)).stdout


def test_a_wrong_number_of_plural_forms_is_refused(tmp_path):
    path = catalogue(tmp_path, "es")
    text = path.read_text("utf-8")
    path.write_text(text.replace("nplurals=2", "nplurals=3"), "utf-8")
    assert "Plural-Forms has 3 forms; es has 2" in run(path, code=2).stderr
    path.write_text(text.replace('msgstr[1] ""', 'msgstr[1] ""\nmsgstr[2] ""'), "utf-8")
    assert re.search(r"es\.po:\d+: not a valid catalogue: msg has more", run(path, code=2).stderr)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.po", "", "'notes' is not a BCP 47 language tag; expected a tag such as de"),
        (
            "qqq.po",
            "",
            "the name is no language: 'qqq' is not a language of Unicode CLDR; expected a tag such as de",
        ),
        ("cy.po", 'msgid ""\nmsgstr "Language: fr\\n"\n', "Language: fr; expected cy"),
        ("cy.po", 'msgid "a"\nmsgstr "\udcff"\n', "not a valid catalogue"),
    ],
)
def test_a_file_that_is_no_catalogue_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert message in run(tmp_path / name, code=2).stderr


def test_missing_texts_come_from_the_package_then_from_english_and_are_listed(tmp_path):
    path = catalogue(tmp_path, "es", nav__work="Trabajos")
    found = catalogues.translations("es", (tmp_path,))
    assert catalogues.translate(found, "nav.work", "Tasks") == "Trabajos"
    assert catalogues.translate(found, "nav.leave", "Sign out") == "Cerrar sesión"
    assert "reviewed by nobody" in run(path).stdout
    assert "\n" not in run(path).stdout.strip()  # nothing is missing
    welsh = catalogue(tmp_path, "cy", nav__work="Tasgau")
    found = catalogues.translations("cy-GB", (tmp_path,))
    assert catalogues.translate(found, "nav.work", "Tasks") == "Tasgau"
    assert catalogues.translate(found, "nav.leave", "Sign out") == "Sign out"
    listed = run(welsh).stdout
    assert f"cy: 1 of {len(source.source_texts())} texts, reviewed by nobody" in listed
    assert "missing nav.leave: Sign out" in listed
    assert "missing nav.work:" not in listed
    assert source.unreviewed_languages(["cy", "de"], (tmp_path,)) == ["cy"]
    [missing] = source.missing_notes(["cy", "de"], (tmp_path,))
    assert "texts are missing in cy and shown in English" in missing


def test_a_translation_of_another_english_text_is_not_used_and_becomes_fuzzy(tmp_path):
    path = catalogue(tmp_path, "cy", nav__work="Tasgau", nav__leave="Allgofnodi")
    text = path.read_text("utf-8").replace('msgid "Tasks"', 'msgid "Jobs"')
    path.write_text(text + '\nmsgctxt "nav.old"\nmsgid "Old"\nmsgstr "Hen"\n', "utf-8")
    assert not is_translated("cy", "nav.work", "Tasks", (tmp_path,))
    run("--update", path)
    updated = path.read_text("utf-8")
    assert '#, fuzzy\nmsgctxt "nav.work"\nmsgid "Tasks"\nmsgstr "Tasgau"' in updated
    assert '#~ msgid "Old"\n#~ msgstr "Hen"' in updated
    assert "missing nav.work: Tasks" in run(path).stdout
    assert "missing nav.leave" not in run(path).stdout


def test_a_language_check_is_left_out_unless_all_of_it_is_translated(tmp_path):
    words = {f"tuples__cloze__2__options__{n}": word for n, word in enumerate("abcd", start=1)}
    catalogue(
        tmp_path, "cy", tuples__heading="Pa un?", tuples__cloze__1__sentence="Mae ___ yn hwyr.",
        tuples__cloze__2__key="glaw", tuples__cloze__2__sentence="Mae'n ___.", tuples__cloze__2__right="b",
        **words,
    )  # fmt: skip
    toml = read_built_in_file("mturk.kinds.tuples", "cy", folders=(tmp_path,))
    assert 'heading = "Pa un?"' in toml
    assert toml.count("[[cloze]]") == 1
    assert 'right = "b"' in toml
    assert 'language = "cy"' in toml
    assert '["user", "When does the public library open tomorrow?"]' in toml


def test_pages_have_the_catalogue_of_the_studys_folder(tmp_path):
    settings = tmp_path / "hits.toml"
    settings.write_text("assignments = 3\n", "utf-8")
    with pytest.raises(InputError, match=r"no built-in page texts in cy \(.*check-texts --new cy"):
        read_settings(settings, "cy")
    folder = tmp_path / "study"
    folder.mkdir()
    settings = settings.rename(folder / "hits.toml")
    catalogue(folder, "cy", tuples__heading="Pa un?", tuples__hit__title="Deialogau")
    read = read_settings(settings, "cy")
    assert (read.language, read.title) == ("cy", "Deialogau")
    assert 'heading = "Pa un?"' in read.texts  # stored with the study
    [review, missing] = source.page_notes(read, (folder,))
    assert review == "nobody has reviewed the translation of the page in cy"
    assert "texts of the page are missing in cy (tuples.preview, " in missing
    assert read_settings(settings, "es").texts == ""  # the package's own
    assert read_settings(settings, "es").title.startswith("Diálogos en español")


def test_an_english_catalogue_of_the_folder_changes_english_texts(tmp_path):
    catalogue(tmp_path, "en", tuples__heading="Which one?")
    (tmp_path / "hits.toml").write_text("", "utf-8")
    texts = read_settings(tmp_path / "hits.toml", "en").texts
    assert 'heading = "Which one?"' in texts
    assert texts.replace("Which one?", "Which utterance is most similar?") == read_built_in_file(
        "mturk.kinds.tuples", "en"
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_of_all_languages_have_the_structure_of_the_english_ones(language):
    english = built_in_texts("mturk.kinds.items", "en", "sentiment")
    texts = built_in_texts("mturk.kinds.items", language, "sentiment")
    assert texts.keys() == english.keys()
    assert texts["language"] == language
    assert (texts["example"]["best"], texts["example"]["worst"]) == (0, 3)
