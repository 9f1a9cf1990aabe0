"""Import, writers' sheet, prompt template and exports follow the language of the data."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from bws.cli import make_tuples
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.cli.building import build
from giccs.cli.card import card
from giccs.cli.evaluation import evaluate
from giccs.cli.statistics import stats
from giccs.evaluation.interop.metadata import mteb_language
from giccs.evaluation.interop.mteb import export_task, write_results
from giccs.evaluation.recipe import read_recipe
from giccs.evaluation.task_results import evaluate_task
from giccs.models import open_model
from giccs.preparation.sheet import read_sheet_texts
from giccs.preparation.transcripts.importing import import_transcripts
from giccs.prompts import TEMPLATES, default_template, open_template
from giccs.tasks import TaskOptions, open_tasks
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import subset_rows
from giccs_app.judging.cli import judge
from mturk.cli import main as hits

from ..conftest import write
from ..tasks.test_multiple_choice import Formula

SAMPLE = read_benchmark("giccs-sample").first(2)


def call(command, *arguments, code=0):
    done = CliRunner().invoke(command, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done


def in_language(*languages):
    """The sample's two dialogues as if they were in these languages."""
    by_dialogue = dict(zip(SAMPLE.dialogue_ids, languages, strict=False))
    items = tuple(
        replace(item, language=by_dialogue.get(item.dialogue_id, languages[0]))
        for item in SAMPLE.items
    )
    return replace(SAMPLE, name="b.jsonl", items=items)


# --- import and sheet


def test_import_states_the_language(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("dialogue,text\na,Hi\na,Hello\nb,Yes\nb,No\n", "utf-8")
    assert {dialogue.language for dialogue in import_transcripts([path]).dialogues} == {None}
    imported = import_transcripts([path], language="en-GB").dialogues
    assert {one.language for one in imported} == {"en-GB"}


def test_import_keeps_a_stated_language_and_refuses_another(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("dialogue,text,Language\na,Olá,PT-br\na,Oi,PT-br\nb,Hi,\nb,Ho,\n", "utf-8")
    dialogues = import_transcripts([path], language="pt").dialogues
    assert [dialogue.language for dialogue in dialogues] == ["pt-BR", "pt"]
    with pytest.raises(InputError) as caught:
        import_transcripts([path], language="en")
    assert str(caught.value) == (
        f"{path}:2: the language is pt-BR, but --language is en; expected the same"
    )
    path.write_text("dialogue,text,language\na,Olá,Portuguese\na,Oi,Portuguese\n", "utf-8")
    with pytest.raises(
        InputError, match=r"t\.csv:2: language: 'Portuguese' is not a BCP 47"
    ) as caught:
        import_transcripts([path])
    assert len(caught.value.problems) == 1


def test_dialogues_in_json_lines_keep_their_language(tmp_path):
    path = write(
        tmp_path / "d.jsonl",
        [{"id": "a", "language": "en", "turns": ["Hi", "Ho"], "candidates": ["x", "y"]}],
    )
    imported = import_transcripts([path])
    assert [dialogue.language for dialogue in imported.dialogues] == ["en"]
    assert imported.unused == {}


def test_german_corpora_are_german(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("dialogue,text\na,Hallo\na,Guten Tag\n", "utf-8")
    assert import_transcripts([path], "crowdss").dialogues[0].language == "de"
    assert import_transcripts([path], "crowdss", language="en").dialogues[0].language == "en"


def test_the_sheet_is_in_the_language_of_the_dialogues(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("dialogue,speaker,text\na,user,Hi\na,system,Hello\n", "utf-8")
    for language, words in (("en", "Paraphrase: means the same"), ("de", "Paraphrase: bedeutet")):
        call(build, "import", path, "--language", language, "-o", tmp_path / "d.jsonl")
        call(build, "sheet", tmp_path / "d.jsonl", "-o", tmp_path / "s.csv")
        assert words in (tmp_path / "s.csv").read_text("utf-8")
    refused = call(
        build, "sheet", tmp_path / "d.jsonl", "--language", "en", "-o", tmp_path / "s.csv", code=2
    )
    assert (
        "the language of the data is de: 1, but --language is en; expected the same"
        in refused.stderr
    )


FRENCH = """
language = "fr"
[criteria]
5 = "Paraphrase : même sens."
4 = "Détails sans importance."
3 = "Détails importants."
2 = "Quelques détails communs."
1 = "Sans rapport."
[speakers]
user = "Personne"
system = "Assistant"
"""


def test_other_languages_of_the_sheet_are_a_file(tmp_path):
    path = write(
        tmp_path / "d.jsonl",
        [{"dialogue_id": "a", "source": "", "domain": "", "language": "fr",
          "turns": [{"speaker": "user", "text": "Allô"}, {"speaker": "system", "text": "Oui"}]}],
    )  # fmt: skip
    (tmp_path / "fr.toml").write_text(FRENCH, "utf-8")
    refused = call(build, "sheet", path, "-o", tmp_path / "s.csv", code=2)
    assert "the sheet has no texts in fr; expected --texts FILE.toml" in refused.stderr
    call(build, "sheet", path, "--texts", tmp_path / "fr.toml", "-o", tmp_path / "s.csv")
    written = (tmp_path / "s.csv").read_text("utf-8")
    assert "Paraphrase : même sens." in written
    assert "Personne: Allô" in written


def test_a_file_of_texts_is_checked_whole(tmp_path):
    (tmp_path / "fr.toml").write_text('language = "it"\n[criteria]\n5 = "x"\n4 = 1\n', "utf-8")
    with pytest.raises(InputError) as caught:
        read_sheet_texts(tmp_path / "fr.toml", "fr")
    assert [problem.message for problem in caught.value.problems] == [
        *(f"criteria.{level} is missing; expected a text" for level in (4, 3, 2, 1)),
        "speakers.user is missing; expected a text",
        "speakers.system is missing; expected a text",
        "language is 'it'; expected 'fr', the language of the data",
    ]


# --- prompt templates


def test_every_template_states_its_language():
    for name, language in TEMPLATES.items():
        assert open_template(name).language == language
        assert default_template(language).language == language
    with pytest.raises(ValueError, match=r"no prompt template in fr \(built in: de, en\)"):
        default_template("fr")


def test_a_template_of_ones_own_may_state_its_language(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("# language: FR\nTour : {turn}\n{option}\n", "utf-8")
    template = open_template(path)
    assert (template.language, template.text) == ("fr", "Tour : {turn}\n{option}")
    path.write_text("Tour : {turn}\n{option}\n", "utf-8")
    assert open_template(path) == replace(template, language=None)
    path.write_text("# language: French\n{turn}\n", "utf-8")
    with pytest.raises(InputError, match=r"own.txt:1: 'French' is not a BCP 47 language tag"):
        open_template(path)
    path.write_text("# language: fr\n{turn}\n{nothing}\n", "utf-8")
    with pytest.raises(InputError, match=r"own.txt:3: unknown field \{nothing\}"):
        open_template(path)


@pytest.mark.parametrize(
    ("languages", "option", "template"),
    [(["de"], None, "figure2-de-1"), (["en"], None, "figure2-en-1"), ([None], "en-US", "figure2-en-1"),
     (["de-AT", "de"], None, "figure2-de-1")],
)  # fmt: skip
def test_the_template_is_that_of_the_data(languages, option, template):
    (task,) = open_tasks("multiple-choice-sts", TaskOptions(language=option))
    assert task.template_for(in_language(*languages)).name == template
    assert task.warnings_for(in_language(*languages)) == []


@pytest.mark.parametrize(
    ("languages", "option", "message"),
    [
        ([None], None, "b.jsonl: the data state no language, and prompts depend on it"),
        (["fr"], None, "b.jsonl: there is no prompt template in fr"),
        (["de", "en"], None, "b.jsonl: several languages"),
        (
            ["de", "fr"],
            None,
            "b.jsonl: there is no prompt template in fr .*expected --template FILE",
        ),
        (["de", None], None, "some of the data state no language .*; specify it with --language"),
        (["de"], "en", "b.jsonl: the language of the data is de: 10, but --language is en"),
    ],
)
def test_no_template_is_taken_without_a_language(languages, option, message):
    with pytest.raises(InputError, match=message):
        MultipleChoice(language=option).template_for(in_language(*languages))


def test_a_template_in_another_language_is_warned_of(tmp_path):
    english = MultipleChoice(open_template("figure2-en-1"))
    (problem,) = english.warnings_for(in_language("de", None))
    assert str(problem) == "figure2-en-1: the template is in en, but b.jsonl is in de"
    assert english.template_for(in_language("de", "fr")).name == "figure2-en-1"
    assert english.warnings_for(in_language(None)) == []
    (tmp_path / "own.txt").write_text("{turn}\n{option}\n", "utf-8")
    assert MultipleChoice(open_template(tmp_path / "own.txt")).warnings_for(in_language("de")) == []


def test_a_recipe_may_state_a_language(tmp_path):
    path = tmp_path / "r.toml"
    text = 'data = "d"\n[[model]]\nname = "m"\ntask = "multiple-choice-sts"\n'
    path.write_text(f'{text}ask = {{ language = "en" }}\n', "utf-8")
    assert read_recipe(path).runs[0].options == {"language": "en"}
    path.write_text(f'{text}ask = {{ language = "English" }}\n', "utf-8")
    with pytest.raises(InputError, match="language: 'English' is not a BCP 47 language tag"):
        read_recipe(path)


# --- exports


def test_exported_questions_follow_the_language(tmp_path):
    path = tmp_path / "b.jsonl"
    write_benchmark(in_language(None).items, path)
    export = ("export-lm-eval", "--data", path, "-o", tmp_path / "out")
    assert "state no language, and prompts" in call(evaluate, *export, code=2).stderr
    call(evaluate, *export, "--language", "en")
    (questions,) = (tmp_path / "out" / "giccs_b_multiple_choice").glob("*with_history.jsonl")
    prompt = json.loads(questions.read_text("utf-8").splitlines()[0])["prompt"]
    assert prompt.startswith("Dialogue:\nUtterance 1: ")
    write_benchmark(in_language("de").items, path)
    call(evaluate, *export)
    assert json.loads(questions.read_text("utf-8").splitlines()[0])["prompt"].startswith("Dialog:")
    done = call(evaluate, *export, "--template", "figure2-en-1")
    assert f"warning: figure2-en-1: the template is in en, but {path} is in de" in done.stderr


@pytest.mark.parametrize(("tag", "code"), [("en", "eng-Latn"), ("deu-Latn", "deu-Latn")])
def test_mteb_language(tmp_path, tag, code):
    paths = export_task(in_language(tag), ["without"], tmp_path)
    (module,) = (path for path in paths if path.suffix == ".py")
    assert f"eval_langs=['{code}']" in module.read_text("utf-8")
    with pytest.raises(InputError, match="mteb's metadata"):
        export_task(in_language(None), ["without"], tmp_path)


def test_a_language_that_mteb_has_no_code_for_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="mteb's code of tlh is unknown; expected an ISO 639-3"):
        mteb_language("tlh")
    with pytest.raises(InputError, match=r"b\.jsonl: mteb's code of tlh is unknown"):
        export_task(in_language("tlh"), ["without"], tmp_path)


def test_evaluation_stops_without_a_language_before_anything_is_computed(tmp_path, unstated_file):
    arguments = ("package:smollm2", "--data", unstated_file, "-o", tmp_path / "r")
    done = call(evaluate, *arguments, code=2)
    assert done.stderr.endswith("expected --language, such as --language de\n")
    assert not (tmp_path / "r").exists()
    refused = call(evaluate, *arguments, "--task", "csts", "--language", "de", code=2)
    assert "--language is for pairwise-sts, multiple-choice-sts, not for csts" in refused.stderr


# --- one check for all commands


CONTRADICTION = (
    r"the language (of the data )?is de(: \d+)?, but --language is en; expected the same"
)


@pytest.fixture
def german(tmp_path, monkeypatch):
    """A folder with a German benchmark, its dialogues, tuples of them and a transcript."""
    monkeypatch.chdir(tmp_path)
    write_benchmark(in_language("de").items, tmp_path / "b.jsonl")
    rows = []
    for dialogue_id in SAMPLE.dialogue_ids:
        items = [item for item in SAMPLE.items if item.dialogue_id == dialogue_id]
        turns = [{"speaker": turn.speaker, "text": turn.text} for turn in items[0].turns]
        candidates = [{"utterance_id": i.utterance_id, "text": i.utterance} for i in items]
        names = {"dialogue_id": dialogue_id, "source": "", "domain": "", "language": "de"}
        rows.append({**names, "turns": turns, "candidates": candidates})
    write(tmp_path / "d.jsonl", rows)
    (tmp_path / "t.csv").write_text("dialogue,text,language\na,Ja,de\na,Nein,de\n", "utf-8")
    call(make_tuples, "d.jsonl", "-k", "3", "--factor", "1", "-o", "tuples.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (evaluate, "baseline:char-ngram --data b.jsonl"),
        (evaluate, "baseline:char-ngram --task pairwise-sts --data b.jsonl"),
        (evaluate, "package:smollm2 --data b.jsonl"),
        (evaluate, "package:smollm2 --data b.jsonl --template figure2-en-1"),
        (evaluate, "export-lm-eval --data b.jsonl --template figure2-en-1 -o out"),
        (evaluate, "export-mteb --data b.jsonl -o out"),
        (stats, "b.jsonl"),
        (stats, "d.jsonl"),
        (card, "b.jsonl -o out"),
        (build, "import t.csv -o out.jsonl"),
        (build, "sheet d.jsonl -o out.csv"),
        (judge, "tuples.csv --model package:smollm2 --dialogues d.jsonl -o out.csv"),
        (
            judge,
            "tuples.csv --model package:smollm2 --dialogues b.jsonl --template bws-en-1 -o out.csv",
        ),
        (hits, "estimate tuples.csv --dialogues d.jsonl"),
        (hits, "preview tuples.csv --dialogues d.jsonl -o out.html"),
    ],
)
def test_a_language_that_contradicts_the_data_is_refused(german, command, arguments):
    before = set(german.iterdir())
    refused = call(command, *arguments.split(), "--language", "en", code=2)
    assert re.search(CONTRADICTION, refused.stderr), refused.stderr
    assert {path for path in german.iterdir() if path.name != "results"} == before
    assert not list(german.glob("results/*"))


def test_data_without_a_language_have_that_of_the_option(tmp_path):
    (task,) = open_tasks("pairwise-sts", TaskOptions(language="en"))
    result = evaluate_task(task, open_model("baseline:chance"), in_language(None))
    assert result.environment["language"] == "en"
    assert in_language(None).in_language("en").fingerprint == SAMPLE.fingerprint
    assert {item.language for item in in_language("en-GB", None).in_language("en").items} == {
        "en-GB", "en"
    }  # fmt: skip


# --- several languages


SIX = read_benchmark("giccs-sample").first(6)
IN_TWO = replace(
    SIX,
    items=tuple(
        replace(item, language=["de-AT", "en", "de"][SIX.dialogue_ids.index(item.dialogue_id) % 3])
        for item in SIX.items
    ),
)


def part(language):
    items = tuple(item for item in IN_TWO.items if item.language.startswith(language))
    return replace(IN_TWO, items=items)


def groups_of(result):
    return {tuple(sorted(group.by.items())): group.metrics for group in result.groups}


def values(metrics):
    return {name: (each.value, each.low, each.high, each.n) for name, each in metrics.items()}


def test_questions_have_the_prompt_of_their_language():
    """Each language has the metrics that it has alone, and the pooled ones are over all questions."""
    model = Formula(lambda text, option, place: len(option) % 7 - len(text) % 5)
    task = MultipleChoice(resamples=50)
    result = evaluate_task(task, model, IN_TWO)
    language = {item.dialogue_id: item.language[:2] for item in IN_TWO.items}
    for row in result.predictions.iter_rows(named=True):
        start = {"de": "Dialog:\n", "en": "Dialogue:\n"}[language[row["dialogue_id"]]]
        assert row["prompt"].startswith(start)
    groups = groups_of(result)
    accuracies = {}
    for tag in ("de", "en"):
        alone = evaluate_task(task, model, part(tag))
        assert values(groups[(("language", tag),)]) == values(alone.metrics)
        for history in ("with", "without"):
            by = (("history", history), ("language", tag))
            expected = groups_of(alone)[(("history", history),)]
            assert values(groups[by]) == values(expected)
        accuracies[tag] = alone.metrics["accuracy"].value
    assert result.metrics["accuracy"].n == 6
    pooled = (4 * accuracies["de"] + 2 * accuracies["en"]) / 6
    assert result.metrics["accuracy"].value == pytest.approx(pooled)
    assert result.signature["template"] == {
        "name": "figure2-de-1+figure2-en-1",
        "languages": {
            tag: {"name": template.name, "sha256": template.digest}
            for tag in ("de", "en")
            for template in [default_template(tag)]
        },
    }


def test_pairs_of_several_languages_have_a_group_for_each(tmp_path):
    model = open_model("baseline:char-ngram")
    (task,) = open_tasks("pairwise-sts")
    result = evaluate_task(task, model, IN_TWO)
    for tag in ("de", "en"):
        alone = evaluate_task(task, model, part(tag))
        assert values(groups_of(result)[(("language", tag),)]) == values(alone.metrics)
        assert "languages" not in alone.signature
    assert result.metrics["spearman"].n == 30
    assert result.signature["languages"] == ["de", "en"]
    with pytest.raises(
        InputError, match=r"the data are in several languages \(de, en\); expected one"
    ):
        write_results([result], tmp_path / "mteb", "de")
    assert not [by for by in groups_of(evaluate_task(task, model, SIX)) if "language" in dict(by)]
    some = replace(IN_TWO, items=(replace(IN_TWO.items[0], language=None), *IN_TWO.items[1:]))
    assert subset_rows(some.items, "language") == []


def test_a_third_language_without_a_prompt_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_benchmark(in_language("de", "fr").items, tmp_path / "b.jsonl")
    arguments = ("package:smollm2", "--data", "b.jsonl", "--task", "multiple-choice-sts")
    done = call(evaluate, *arguments, code=2)
    assert done.stderr.splitlines()[-1].startswith("b.jsonl: there is no prompt template in fr (")
    assert "expected --template FILE" in done.stderr
