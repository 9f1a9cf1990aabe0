"""Language of the worker page: texts, title and language check depend on the dialogues."""

import json
import re
import tomllib
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from bws.files import read_tuples
from giccs.benchmark.assemble import read_dialogues, write_dialogues
from giccs.benchmark.items import Candidate, Dialogue, Turn
from mturk.cli import main
from mturk.kinds.texts import built_in_texts, read_built_in_file, read_texts
from mturk.kinds.tuples.language_check import check_cloze, load_clozes
from mturk.kinds.tuples.plan import plan
from mturk.study.settings import Settings
from mturk.study.settings_file import SettingsFile, default_settings, read_settings

GERMAN = re.compile(r"[äöüÄÖÜß]|\b(?:und|Sie|Äußerung|Dialog)\b")


class Study:
    """Files with two English dialogues in a directory."""

    def __init__(self, folder):
        self.folder = folder
        self.dialogues, self.tuples = folder / "dialogues.jsonl", folder / "tuples.csv"
        self.write(None)
        names = [f"d{n}" for n in range(2)]
        rows = [f"t-{d},{d},{d}-a,{d}-b,{d}-c\n" for d in names]
        self.tuples.write_text("tuple_id,group,item1,item2,item3\n" + "".join(rows), "utf-8")

    def write(self, *languages):
        dialogues = []
        for n in range(2):
            turns = (Turn("user", "When does it open?"), Turn("system", f"At {n}."))
            candidates = tuple(Candidate(f"d{n}-{c}", f"At {n} {c}.") for c in "abc")
            language = languages[n % len(languages)]
            dialogues.append(Dialogue(f"d{n}", "", "", turns, candidates, language=language))
        write_dialogues(dialogues, self.dialogues)

    def config(self, text):
        (self.folder / "hits.toml").write_text(text, "utf-8")
        return "--config", self.folder / "hits.toml"

    def run(self, command, *options, code=0):
        arguments = [command, self.tuples, "--dialogues", self.dialogues, *options]
        done = CliRunner().invoke(main, list(map(str, arguments)))
        assert done.exit_code == code, (done.output, done.exception)
        return done

    def page(self, *options):
        return self.run("preview", "-o", "-", *options).stdout


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


@pytest.mark.parametrize("command", ["estimate", "preview", "publish"])
def test_study_without_language_is_refused(study, command):
    done = study.run(command, code=2)
    assert done.stderr == (
        f"{study.dialogues}: the data state no language, and worker pages depend on it; "
        "expected --language, such as --language de\n"
    )


def test_english_study(study):
    asked = study.page("--language", "en")
    study.write("en")
    stated = study.page()
    study.write(None)
    assert asked == stated == study.page(*study.config('dialogue_language = "en"'))
    assert '<html lang="en">' in asked
    assert "Which utterance is <em>most similar</em> to the last utterance?" in asked
    assert 'name="cloze-en-' in asked
    assert "german-" not in asked
    assert GERMAN.findall(asked) == []


def test_german_study(study):
    study.write("de")
    page = study.page()
    assert '<html lang="de">' in page
    assert 'name="german-' in page
    english = study.page(*study.config('language = "en"'))  # the page's own texts only
    assert '<html lang="en">' in english
    assert 'name="german-' in english


@pytest.mark.parametrize(
    ("languages", "config", "options", "message"),
    [
        (["de"], "", ["--language", "en"], "the language of the data is de: 2, but --language is en"),
        (["de", "en"], "", [], "several languages (de: 1, en: 1); expected one"),
        (["en"], 'seed = 1\ndialogue_language = "de"', [],
         "hits.toml:2: dialogue_language is 'de', but the study is in en; expected the same"),
        ([None], 'dialogue_language = "de"', ["--language", "en"],
         "hits.toml:1: dialogue_language is 'de', but the study is in en; expected the same"),
        (["cy"], "", [], "no built-in page texts in cy (available: "),
        (["en"], 'language = "cy"', [], "hits.toml:1: no built-in page texts in cy"),
    ],
)  # fmt: skip
def test_contradictory_languages_are_refused(study, languages, config, options, message):
    study.write(*languages)
    done = study.run("estimate", *study.config(config), *options, code=2)
    assert message in done.stderr


def test_region_subtag_is_kept(study):
    study.write("en-GB")
    assert 'lang="en-GB" dir="auto">At 0.</p>' in study.page()
    page = study.page("--language", "en", *study.config('dialogue_language = "en"'))
    assert 'lang="en" dir="auto">At 0.</p>' in page


def test_language_is_checked_for_plans_from_code(study):
    study.write("en")
    with pytest.raises(InputError, match=r"the dialogues are in en, but .* settings are for de"):
        plan(read_tuples(study.tuples), read_dialogues(study.dialogues), Settings())


def test_titles_and_countries_depend_on_language():
    german, english = default_settings("tuples", "de-AT"), default_settings("tuples", "en")
    assert (german.title, german.countries) == (Settings().title, ("DE",))
    assert (english.title, english.countries) == ("Dialogues: Which utterance is most similar?", ())
    assert GERMAN.findall(f"{english.title} {english.description} {english.keywords}") == []
    # a German page for other dialogues does not call them German
    other = SettingsFile(values={"language": "de"}).settings("en")
    assert (other.language, other.title) == ("de", english.title)


@pytest.mark.parametrize("kind", ["conditions", "relabel", "verification"])
def test_sentence_pairs_require_language(tmp_path, kind):
    table = tmp_path / "pairs.csv"
    table.write_text("sentence1,sentence2,condition\nEin Haus.,Zwei Boote.,die Zahl\n", "utf-8")
    config = tmp_path / "own.toml"
    config.write_text(f'kind = "{kind}"\n', "utf-8")
    arguments = ["preview", str(table), "--config", str(config), "-o", "-"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert done.stderr == (
        f"{config}: missing language of the worker page; expected --language, "
        "such as --language de, or sentence_language\n"
    )
    done = CliRunner().invoke(main, [*arguments, "--language", "de"])
    assert '<html lang="de">' in done.stdout
    assert 'lang="de" dir="auto">Ein Haus.</p>' in done.stdout
    assert read_settings(config, "de").title.startswith("Sätze vergleichen: ")


@pytest.mark.parametrize(("kind", "key"), [("tuples", "dialogue"), ("conditions", "sentence")])
def test_default_file_with_language(kind, key):
    arguments = ["estimate", "--default-config", kind]
    plain = CliRunner().invoke(main, arguments).stdout
    stated = CliRunner().invoke(main, [*arguments, "--language", "EN"]).stdout
    assert f'\n# {key}_language = ""\n' in plain
    assert stated == plain.replace(f'# {key}_language = ""', f'{key}_language = "en"')


# --- other languages: a file of texts


def french(kind="tuples", **changes):
    """Return the English texts declared as French."""
    text = CliRunner().invoke(main, ["estimate", "--default-texts", kind]).stdout
    assert text == read_built_in_file(f"mturk.kinds.{kind}", "en")
    text = text.replace('language = "en"', 'language = "fr"', 1)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def test_other_language_from_texts_file(study):
    study.write("fr")
    texts = french(utterance="énoncé", bus="autobus")
    (study.folder / "fr.toml").write_text(texts, "utf-8")
    config = study.config('texts = "fr.toml"')
    page = study.page(*config)
    assert '<html lang="fr">' in page
    assert "Which énoncé is <em>most similar</em> to the last énoncé?" in page
    assert 'name="cloze-fr-' in page
    settings = read_settings(config[1], "fr")
    assert (settings.title, settings.countries) == ("Dialogues: Which énoncé is most similar?", ())
    assert check_cloze([("cloze-fr-autobus", "for")], load_clozes(settings)) is True


def test_texts_file_determines_digest(study):
    study.write("fr")
    tuples, dialogues = read_tuples(study.tuples), read_dialogues(study.dialogues)
    first, second = (
        replace(
            default_settings("tuples", "fr", texts=texts), title="t", description="d", keywords="k"
        )
        for texts in (french(), french(utterance="énoncé"))
    )
    assert plan(tuples, dialogues, first)[0].token != plan(tuples, dialogues, second)[0].token


def test_no_language_check_without_sentences(study):
    study.write("fr")
    (study.folder / "fr.toml").write_text(french().partition("[[cloze]]")[0], "utf-8")
    assert "cloze-" not in study.page(*study.config('texts = "fr.toml"'))


def test_texts_may_include_sheet_texts(study):
    text = french().partition("[[cloze]]")[0] + '[criteria]\n5 = "a"\n'
    (study.folder / "fr.toml").write_text(text, "utf-8")
    assert (
        tomllib.loads(read_texts(study.folder / "fr.toml", "mturk.kinds.tuples"))["language"]
        == "fr"
    )


@pytest.mark.parametrize("kind", ["conditions", "relabel", "verification"])
def test_texts_file_for_sentence_pairs(tmp_path, kind):
    (tmp_path / "fr.toml").write_text(french(kind, Compare="Comparer"), "utf-8")
    (tmp_path / "c.toml").write_text(f'kind = "{kind}"\ntexts = "fr.toml"\n', "utf-8")
    table = tmp_path / "pairs.csv"
    table.write_text("sentence1,sentence2,condition\nA kite.,A bus.,the colour\n", "utf-8")
    arguments = ["preview", table, "--config", tmp_path / "c.toml", "--language", "fr", "-o", "-"]
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert '<html lang="fr">' in done.stdout
    assert read_settings(tmp_path / "c.toml", "fr").title.startswith("Comparer sentences: ")


def test_all_problems_of_texts_file_are_reported(tmp_path):
    path = tmp_path / "fr.toml"
    table = built_in_texts("mturk.kinds.tuples", "en")
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()
             if isinstance(value, str | list) and key not in ("cloze", "about", "heading")]  # fmt: skip
    text = "\n".join([*lines, 'heading = " "', 'extra = "x"', "[hit]", 'title = ["x"]', "[example]",
                      "best = 9", "[speakers]", 'user = "a"', 'system = "b"'])  # fmt: skip
    path.write_text(text.replace('last = "', 'last = "" # "'), "utf-8")
    with pytest.raises(InputError) as caught:
        read_texts(path, "mturk.kinds.tuples")
    said = [problem.message for problem in caught.value.problems]
    for message in (
        "unknown key extra; expected language, heading",
        "heading is empty; expected a text",
        "about is missing",
        "last is empty; expected a text",
        "hit.title is a list; expected a text",
        "hit.description is missing",
        "example.heading is missing",
    ):
        assert any(one.startswith(message) for one in said), message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({'"fr"': '"French"'}, "language: 'French' is not a BCP 47 language tag"),
        ({"worst = 2": "worst = 3"}, "example.worst is 3; expected 0 to 2"),
        ({'", "most similar", "': '", "'}, "best has 2 elements; expected 3"),
        ({'right = "my"': 'right = "mi"'}, "cloze 7: right is 'mi'; expected one of at least two"),
        ({"without ___": "without"}, "cloze 7: sentence has no gap; expected ___"),
        ({'key = "rain"': 'key = "ra in"'}, "cloze 2: key is 'ra in'; expected letters and digits"),
        ({'right = "so"': ""}, "cloze 1: right is missing"),
        ({'title = "': f'title = "{"x" * 128}'}, "hit.title: Title has 171 characters"),
    ],
)
def test_invalid_text_values_are_reported(tmp_path, change, message):
    text = french()
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "fr.toml").write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        read_texts(tmp_path / "fr.toml", "mturk.kinds.tuples")
    assert [problem.message[: len(message)] for problem in caught.value.problems] == [message]


def test_texts_and_page_language_must_agree(study):
    study.write("fr")
    (study.folder / "fr.toml").write_text(french(), "utf-8")
    done = study.run("estimate", *study.config('texts = "fr.toml"\nlanguage = "en"'), code=2)
    assert (
        "hits.toml:2: language is 'en', but the texts are in fr; expected the same" in done.stderr
    )
    done = study.run("estimate", *study.config('texts = "none.toml"'), code=2)
    assert "none.toml: no such file" in done.stderr
