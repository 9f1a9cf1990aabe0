"""What other tools get from us: their tasks, run by themselves, and results in their JSON.

lm-evaluation-harness and mteb are not dependencies: where they are missing, the tests that run them are
skipped, and those of the files' content are not.
"""

import hashlib
import importlib.util
import json
import re
import runpy
import shutil
import sys
import types
from dataclasses import replace
from typing import get_args

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.benchmark.terms import UNKNOWN_TERMS, Terms, terms_of_card
from giccs.cli.card import card as make_card
from giccs.evaluation.interop import lm_eval as harness
from giccs.evaluation.interop import mteb as embeddings
from giccs.evaluation.interop.metadata import read_provenance
from giccs.evaluation.task_results import evaluate_task
from giccs.models import open_model
from giccs.prompts import open_template
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import PairwiseSTS
from tests.in_process import run as giccs

from ..benchmark.test_release import write_release

EVAL = "giccs-eval"
TEMPLATE = open_template("figure2-de-1")
CC_BY_4_0 = "fd3a263fe19ed8faa9068b43abaebafc02c77897b0c6fc09abc04bb592e5f16e"
"""SHA-256 of https://creativecommons.org/licenses/by/4.0/legalcode.txt, as distributed by caniuse-lite."""


@pytest.fixture
def benchmark(benchmark_file):
    return read_benchmark(benchmark_file)


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_harness_gets_every_question_as_it_is_asked(benchmark, tmp_path):
    task = MultipleChoice(TEMPLATE)
    files = harness.export_task(benchmark, task, tmp_path)
    folder = tmp_path / "giccs_benchmark_multiple_choice"
    assert {path.name for path in files} == {
        "README.md",
        "giccs_benchmark_LICENCE.txt",
        "giccs_benchmark_multiple_choice.py",
        "giccs_benchmark_multiple_choice_with_history.jsonl",
        "giccs_benchmark_multiple_choice_with_history.yaml",
        "giccs_benchmark_multiple_choice_without_history.jsonl",
        "giccs_benchmark_multiple_choice_without_history.yaml",
    }
    assert sorted(files) == sorted(folder.iterdir())
    items = {item.item_id: item for item in benchmark.items}
    rows = lines(folder / "giccs_benchmark_multiple_choice_with_history.jsonl")
    assert [row["dialogue_id"] for row in rows] == sorted(benchmark.dialogue_ids)
    for row in rows:
        texts = [items[name].utterance for name in row["utterance_ids"]]
        scores = [items[name].score for name in row["utterance_ids"]]
        turns = items[row["utterance_ids"][0]].turns
        assert row["choices"] == texts
        assert row["prompt"] == TEMPLATE.render(turns, texts)
        assert row["gold"] == [n for n, score in enumerate(scores) if score == max(scores)]


def test_the_white_space_before_the_answer_is_the_harness_delimiter(benchmark, tmp_path):
    (tmp_path / "own.txt").write_text("{turn}\n{option}\nAntwort:\n\n", "utf-8")
    for template, delimiter in ((TEMPLATE, '" "'), (open_template(tmp_path / "own.txt"), r'"\n"')):
        task = MultipleChoice(template, histories=("without",))
        harness.export_task(benchmark, task, tmp_path / "out")
        (path,) = tmp_path.rglob("giccs_benchmark_multiple_choice_without_history.yaml")
        text = path.read_text()
        assert f"target_delimiter: {delimiter}\n" in text
    assert not list(tmp_path.rglob("*_with_history.*"))


def test_the_harness_gets_a_readme_in_the_form_of_its_template(benchmark, tmp_path):
    (tmp_path / "card.toml").write_text(
        'description = "Dialogues about trains."\nhomepage = "https://example.org/data"\n'
        'citation = "@misc{trains, title = {Trains}}"\n'
    )
    about = read_provenance(benchmark, tmp_path / "card.toml", "de")
    task = MultipleChoice(TEMPLATE, histories=("without",), answer="letter", seed=3)
    harness.export_task(benchmark, task, tmp_path, about)
    text = (tmp_path / "giccs_benchmark_multiple_choice" / "README.md").read_text("utf-8")
    assert re.findall("^#+ .*", text, re.M) == [
        "# giccs_benchmark_multiple_choice", "### Paper", "### Citation", "### Licence",
        "### Groups, Tags, and Tasks", "#### Groups", "#### Tags", "#### Tasks", "### Checklist",
        "### Changelog",
    ]  # fmt: skip
    assert len(re.findall(r"^ *\* \[x\] ", text, re.M)) == 6
    for line in (
        "Abstract: https://aclanthology.org/2022.gem-1.30/",
        "Dialogues about trains.",
        "Homepage: https://example.org/data",
        "@inproceedings{asaadi2022giccs,",
        "@misc{trains, title = {Trains}}",
        "            --template figure2-de-1 --answer letter --seed 3",
    ):
        assert f"{line}\n" in text
    assert "_with_history" not in text
    assert "WARNING: the licence is unknown" in text


def test_mteb_gets_every_pair_as_it_is_compared(benchmark, tmp_path):
    folder = tmp_path / "out"
    about = read_provenance(benchmark, language="de")
    files = embeddings.export_task(benchmark, ["without", "with"], folder, about)
    assert sorted(files) == sorted(path for path in folder.rglob("*") if path.is_file())
    for history in ("without", "with"):
        rows = lines(folder / f"giccs_benchmark_pairwise_{history}_history" / "test.jsonl")
        assert len(rows) == len(benchmark.items)
        for row, item in zip(rows, benchmark.items, strict=True):
            assert (row["sentence1"], row["sentence2"]) == PairwiseSTS(history).pair_texts(item)
            assert row["score"] == item.score
    compile((folder / "giccs_benchmark_pairwise.py").read_text("utf-8"), "module", "exec")


def test_the_commands_write_and_say_what(unstated_file, tmp_path):
    done = giccs(EVAL, "export-lm-eval", "--data", unstated_file, "--limit", 2, "--answer", "letter",
                 "--history", "with", "--language", "de", "-o", "out", "--json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)["files"]
    assert len(files) == 5
    rows = lines(tmp_path / next(name for name in files if name.endswith(".jsonl")))
    assert [row["choices"] for row in rows] == [list("ABCDE")] * 2
    mteb = [EVAL, "export-mteb", "--data", unstated_file, "-o", "out"]
    refused = giccs(*mteb, cwd=tmp_path)
    assert refused.returncode == 2
    assert (
        "state no language, and mteb's metadata depend on it; expected --language" in refused.stderr
    )
    done = giccs(*mteb, "--language", "en", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / name).is_file() for name in done.stdout.split())


# what exported files state of their texts


@pytest.fixture
def metadata(monkeypatch):
    """Return the metadata of an exported module, as its stand-in for mteb's class is given them."""

    class TaskMetadata(dict):
        def __init__(self, **fields):
            super().__init__(fields)

    names = ("mteb", "mteb.abstasks", "mteb.abstasks.sts", "mteb.abstasks.task_metadata")
    modules = {name: types.ModuleType(name) for name in names}
    modules["mteb.abstasks.sts"].AbsTaskSTS = object
    modules["mteb.abstasks.task_metadata"].TaskMetadata = TaskMetadata

    def of(path):
        with monkeypatch.context() as patch:
            for name, module in modules.items():
                patch.setitem(sys.modules, name, module)
            return [task.metadata for task in runpy.run_path(str(path))["TASKS"]]

    return of


def test_the_sample_is_exported_as_simulated_and_under_its_own_licence(metadata, tmp_path):
    sample = read_benchmark("giccs-sample")
    embeddings.export_task(sample.first(3), ["with"], tmp_path)
    (result,) = metadata(tmp_path / "giccs_sample_pairwise.py")
    assert result["annotations_creators"] == "derived"
    assert result["description"].startswith("Simulated annotations: ")
    assert result["license"] == "cc-by-4.0"
    assert result["eval_langs"] == ["deu-Latn"]
    assert result["domains"] == ["Written"]
    assert result["date"] == ("2026-11-21", "2026-11-26")
    assert result["reference"] == "https://aclanthology.org/2022.gem-1.30/"
    assert result["bibtex_citation"].startswith("@inproceedings{asaadi2022giccs,\n")
    notice = (tmp_path / "giccs_sample_LICENCE.txt").read_text("utf-8")
    assert "Licence of the texts: cc-by-4.0, https://creativecommons.org/licenses/by/4.0/" in notice
    assert "Annotators: simulated" in notice
    assert "WARNING" not in notice
    _, _, text = notice.partition("\n\n")
    assert hashlib.sha256(text.encode("utf-8")).hexdigest() == CC_BY_4_0
    harness.export_task(sample.first(3), MultipleChoice(TEMPLATE), tmp_path)
    folder = tmp_path / "giccs_sample_multiple_choice"
    assert (folder / "giccs_sample_LICENCE.txt").read_text("utf-8") == notice
    text = (folder / "giccs_sample_multiple_choice_with_history.yaml").read_text("utf-8")
    assert text.endswith('license: "cc-by-4.0"\n  annotators: "simulated"\n  language: "de"\n')
    copy = replace(sample, name="copy.jsonl", terms=UNKNOWN_TERMS)
    assert read_provenance(copy).terms == sample.terms  # known by its content


def test_a_release_without_derivatives_says_that_it_must_not_be_passed_on(metadata, tmp_path):
    write_release(tmp_path / "release")
    release = ["--data", "release", "-o", "out"]
    for name in ("export-lm-eval", "export-mteb"):
        refused = giccs(EVAL, name, *release, cwd=tmp_path)
        assert refused.returncode == 2
        assert "use them only privately; expected --private" in refused.stderr
        assert name == "export-mteb" or not (tmp_path / "out").exists()
        done = giccs(EVAL, name, *release, "--private", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "the licence cc-by-nc-nd-3.0 allows no derivatives" in done.stderr
        assert "use them only privately" in done.stderr
    notices = list((tmp_path / "out").rglob("*_LICENCE.txt"))
    link = "https://creativecommons.org/licenses/by-nc-nd/3.0/"
    written = [
        *notices,
        *(tmp_path / "out").rglob("*.yaml"),
        *(tmp_path / "out").rglob("README.md"),
        tmp_path / "out" / "giccs_release_pairwise.py",
    ]
    assert len(written) == 6
    for path in written:
        text = path.read_text("utf-8")
        assert f"Licence of the texts: cc-by-nc-nd-3.0, {link}" in text
        assert "WARNING: the licence cc-by-nc-nd-3.0 allows no derivatives" in text
    for result in metadata(tmp_path / "out" / "giccs_release_pairwise.py"):
        assert result["license"] == link  # mteb has no id for it
        assert result["annotations_creators"] == "human-annotated"
        assert "use them only privately" in result["description"]


def test_what_neither_data_nor_card_toml_state_is_unknown(unstated_file, metadata, tmp_path):
    benchmark = read_benchmark(unstated_file)
    about = read_provenance(benchmark, language="en")
    assert about.document() == {
        "license": None, "license_link": None, "annotators": "unknown", "language": "en",
    }  # fmt: skip
    embeddings.export_task(benchmark, ["without"], tmp_path, about)
    (result,) = metadata(tmp_path / "giccs_benchmark_pairwise.py")
    unknown = {
        key: result[key]
        for key in ("license", "annotations_creators", "sample_creation", "domains", "date")
    }
    assert unknown == {
        "license": "not specified", "annotations_creators": None, "sample_creation": None, "domains": None,
        "date": None,
    }  # fmt: skip
    assert result["eval_langs"] == ["eng-Latn"]
    notice = (tmp_path / "giccs_benchmark_LICENCE.txt").read_text("utf-8")
    assert "WARNING: the licence is unknown" in notice


def test_card_toml_states_what_the_data_do_not(unstated_file, metadata, tmp_path):
    (tmp_path / "card.toml").write_text(
        'license = "other"\nlicense_link = "https://example.org/terms"\nsimulated = false\n'
        'language = ["nl"]\nauthors = ["A. B.", "C. D."]\n'
    )
    done = giccs(EVAL, "export-mteb", "--data", unstated_file, "--config", "card.toml", "-o", "out",
                 "--json", cwd=tmp_path)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["license"], document["annotators"], document["language"]) == (
        "other",
        "human",
        "nl",
    )
    for result in metadata(tmp_path / "out" / "giccs_benchmark_pairwise.py"):
        assert result["license"] == "https://example.org/terms"
        assert result["annotations_creators"] == "human-annotated"
        assert result["eval_langs"] == ["nld-Latn"]
    assert (
        "Attribution: A. B., C. D."
        in (tmp_path / "out" / "giccs_benchmark_LICENCE.txt").read_text()
    )


def test_card_toml_does_not_contradict_what_is_known(tmp_path):
    (tmp_path / "card.toml").write_text('license = "mit"\nsimulated = false\n')
    done = giccs(EVAL, "export-mteb", "--config", "card.toml", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "giccs-sample: the licence is cc-by-4.0, but card.toml states mit",
        "giccs-sample: the annotators are simulated, but card.toml states human",
    ]
    assert not (tmp_path / "out").exists()
    other = giccs(EVAL, "export-mteb", "--language", "en", "-o", "out", cwd=tmp_path)
    assert other.returncode == 2
    assert "the language of the data is de: 300, but --language is en" in other.stderr


@pytest.mark.parametrize(
    ("answer", "annotators"), [("true", "simulated"), ("false", "human"), ("", "unknown")]
)
def test_the_folder_of_giccs_card_keeps_its_terms(answer, annotators, benchmark_file, tmp_path):
    config = tmp_path / "card.toml"
    simulated = f"simulated = {answer}\n" if answer else ""
    config.write_text(
        f'license = "cc-by-nd-4.0"\nlicense_link = "https://example.org/nd"\n{simulated}'
    )
    published = str(tmp_path / "published")
    done = CliRunner().invoke(
        make_card, [str(benchmark_file), "--config", str(config), "-o", published]
    )
    assert done.exit_code == 0, done.output
    terms = read_benchmark(published).terms
    assert terms == Terms("cc-by-nd-4.0", "https://example.org/nd", annotators)
    assert terms.no_derivatives


@pytest.mark.parametrize(
    ("card", "terms"),
    [
        ("no front matter", UNKNOWN_TERMS),
        ("---\n[broken: yaml\n---\n", UNKNOWN_TERMS),
        ("---\nlicense: mit\nannotations_creators:\n- crowdsourced\n---\n", Terms("mit", "", "human")),
        ("---\nlicense:\n- mit\n- cc-by-4.0\nannotations_creators:\n- found\n---\n", UNKNOWN_TERMS),
    ],
)  # fmt: skip
def test_other_dataset_cards(card, terms, tmp_path):
    (tmp_path / "README.md").write_text(card, "utf-8")
    assert terms_of_card(tmp_path / "README.md") == terms


@pytest.mark.parametrize(
    ("name", "forbidden"),
    [("cc-by-nc-nd-3.0", True), ("cc-by-nd-4.0", True), ("cc-by-nc-sa-4.0", False), ("bnd-1.0", False)],
)  # fmt: skip
def test_licences_without_derivatives(name, forbidden):
    assert Terms(name).no_derivatives is forbidden


def test_the_commands_below_giccs_eval_have_help_and_fail_as_all_do(tmp_path):
    for name in ("export-lm-eval", "export-mteb"):
        assert f"  {name}" in giccs(EVAL, "--help", cwd=tmp_path).stdout
        shown = giccs(EVAL, name, "--help", cwd=tmp_path).stdout
        assert shown.startswith(f"Usage: {EVAL} {name} [OPTIONS]")
        assert f"{EVAL} {name} " in shown.partition("Example:")[2]
        missing = giccs(EVAL, name, cwd=tmp_path)
        assert missing.returncode == 2
        assert "Missing option '-o'" in missing.stderr
        nowhere = giccs(EVAL, name, "--data", "nowhere.jsonl", "-o", "out", cwd=tmp_path)
        assert nowhere.returncode == 2
        assert "nowhere.jsonl: no such file" in nowhere.stderr
        assert not (tmp_path / "out").exists()


def of_model(folder, benchmark, **options):
    return evaluate_task(
        MultipleChoice(TEMPLATE, resamples=2, **options), open_model(str(folder)), benchmark
    )


def test_results_in_the_harness_json(tiny_gpt, benchmark, tmp_path):
    result = of_model(tiny_gpt, benchmark)
    pairs = evaluate_task(PairwiseSTS(resamples=2), open_model("baseline:chance"), benchmark)
    (path,) = harness.write_results([result, pairs], tmp_path)
    assert path.parent.parent == tmp_path
    assert path.name.startswith("results_")
    document = json.loads(path.read_text("utf-8"))
    assert set(document["results"]) == {
        "giccs_benchmark_multiple_choice_with_history",
        "giccs_benchmark_multiple_choice_without_history",
    }
    (shown,) = [group.metrics for group in result.groups if group.by == {"history": "with"}]
    numbers = document["results"]["giccs_benchmark_multiple_choice_with_history"]
    assert numbers["acc,none"] == shown["accuracy"].value
    assert numbers["acc_stderr,none"] == shown["accuracy"].extra["stderr"]
    assert numbers["acc_bytes,none"] == shown["accuracy_bytes"].value
    assert document["n-samples"]["giccs_benchmark_multiple_choice_with_history"]["effective"] == 6
    assert document["model_name"] == str(tiny_gpt)
    letters = replace(result, signature={**result.signature, "answer": "letter"})
    assert len(set(harness.write_results([result, letters], tmp_path))) == 2


def test_results_in_mtebs_json(unstated_file, static_encoder, tmp_path):
    benchmark = read_benchmark(unstated_file)
    result = evaluate_task(PairwiseSTS(resamples=2), open_model(str(static_encoder)), benchmark)
    chance = evaluate_task(PairwiseSTS(resamples=2), open_model("baseline:chance"), benchmark)
    with pytest.raises(
        InputError, match="do not state the language of the data; expected --language"
    ):
        embeddings.write_results([result, chance], tmp_path)
    paths = embeddings.write_results([result, chance], tmp_path, "en")
    encoder, baseline = (json.loads(path.read_text("utf-8")) for path in paths)
    assert encoder["task_name"] == "giccs_benchmark_pairwise_without_history"
    (scores,) = encoder["scores"]["test"]
    assert scores["main_score"] == scores["cosine_spearman"] == result.metrics["spearman"].value
    assert scores["cosine_pearson"] == result.metrics["pearson"].value
    assert "cosine_spearman" not in baseline["scores"]["test"][0]
    assert scores["languages"] == ["eng-Latn"]
    german = replace(
        benchmark, items=tuple(replace(item, language="de") for item in benchmark.items)
    )
    stated = evaluate_task(PairwiseSTS(resamples=2), open_model("baseline:chance"), german)
    (path,) = embeddings.write_results([stated], tmp_path / "german")
    assert json.loads(path.read_text("utf-8"))["scores"]["test"][0]["languages"] == ["deu-Latn"]


def test_giccs_report_writes_both(benchmark_file, tmp_path, tiny_gpt):
    models = [EVAL, "baseline:chance", tiny_gpt, "--data", benchmark_file, "--limit", 3]
    assert giccs(*models, cwd=tmp_path).returncode == 0
    report = EVAL.replace("giccs-eval", "giccs-report")
    done = giccs(
        report, "results", "--lm-eval", "a", "--mteb", "b", "--language", "de", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "1 results written to a" in done.stderr
    assert "1 results written to b" in done.stderr
    assert len([*(tmp_path / "a").rglob("*.json")]) == len([*(tmp_path / "b").rglob("*.json")]) == 1


needs_harness = pytest.mark.skipif(
    importlib.util.find_spec("lm_eval") is None, reason="lm-evaluation-harness is not installed"
)
needs_mteb = pytest.mark.skipif(
    importlib.util.find_spec("mteb") is None, reason="mteb is not installed"
)


@needs_harness
@pytest.mark.parametrize("answer", ["sentence", "letter"])
def test_the_harness_itself_finds_the_same_numbers(answer, tiny_gpt, benchmark, tmp_path):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    result = of_model(tiny_gpt, benchmark, answer=answer)
    harness.export_task(benchmark, MultipleChoice(TEMPLATE, answer=answer), tmp_path)
    names = [f"giccs_benchmark_multiple_choice_{h}_history" for h in ("with", "without")]
    found = simple_evaluate(
        model="hf", model_args=f"pretrained={tiny_gpt},dtype=float32", device="cpu",
        tasks=["giccs_benchmark_multiple_choice"],
        batch_size=1, log_samples=True, bootstrap_iters=0,
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
    )  # fmt: skip
    for name, history in zip(names, ("with", "without"), strict=True):
        ours = result.predictions.filter(history=history)
        by_id = dict(zip(ours["utterance_id"], ours["logprob"], strict=True))
        for sample in found["samples"][name]:
            theirs = [float(answer[0][0]) for answer in sample["resps"]]
            assert theirs == pytest.approx(
                [by_id[n] for n in sample["doc"]["utterance_ids"]], abs=1e-3
            )
        (metrics,) = [group.metrics for group in result.groups if group.by == {"history": history}]
        assert found["results"][name]["acc,none"] == metrics["accuracy"].value
        if answer == "sentence":
            assert found["results"][name]["acc_bytes,none"] == metrics["accuracy_bytes"].value


@needs_harness
def test_the_harness_itself_finds_the_same_numbers_in_a_chat(tiny_gpt, benchmark, tmp_path):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    chat = tmp_path / "chat"
    shutil.copytree(tiny_gpt, chat)
    (chat / "chat_template.jinja").write_text(
        "{% for message in messages %}<{{ message.role }}>\n{{ message.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>\n{% endif %}"
    )
    result = of_model(chat, benchmark, chat_template=True, histories=("with",))
    assert result.predictions["prompt"][0].startswith("<user>\nDialog:")
    harness.export_task(benchmark, MultipleChoice(TEMPLATE), tmp_path)
    name = "giccs_benchmark_multiple_choice_with_history"
    found = simple_evaluate(
        model="hf", model_args=f"pretrained={chat},dtype=float32", tasks=[name], device="cpu",
        batch_size=1, log_samples=True, bootstrap_iters=0, apply_chat_template=True,
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
    )  # fmt: skip
    ours = result.predictions
    by_id = dict(zip(ours["utterance_id"], ours["logprob"], strict=True))
    for sample in found["samples"][name]:
        theirs = [float(answer[0][0]) for answer in sample["resps"]]
        assert theirs == pytest.approx([by_id[n] for n in sample["doc"]["utterance_ids"]], abs=1e-3)


@needs_harness
def test_the_harness_makes_a_table_of_our_json(tiny_gpt, benchmark, tmp_path):
    from lm_eval.utils import make_table

    result = of_model(tiny_gpt, benchmark)
    (path,) = harness.write_results([result], tmp_path)
    table = make_table(json.loads(path.read_text("utf-8")))
    assert "giccs_benchmark_multiple_choice_without_history" in table
    assert "acc_bytes" in table


@needs_mteb
def test_mteb_itself_finds_the_same_numbers(static_encoder, benchmark, tmp_path):
    import mteb
    from sentence_transformers import SentenceTransformer

    embeddings.export_task(
        benchmark, ["without", "with"], tmp_path, read_provenance(benchmark, language="de")
    )
    spec = importlib.util.spec_from_file_location(
        "exported", tmp_path / "giccs_benchmark_pairwise.py"
    )
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    model = SentenceTransformer(str(static_encoder), device="cpu")
    result = mteb.evaluate(model, [task() for task in exported.TASKS], cache=None)
    for theirs, history in zip(result.task_results, ("without", "with"), strict=True):
        ours = evaluate_task(
            PairwiseSTS(history, resamples=2), open_model(str(static_encoder)), benchmark
        )
        (scores,) = theirs.scores["test"]
        assert scores["cosine_spearman"] == pytest.approx(ours.metrics["spearman"].value, abs=1e-6)
        assert scores["cosine_pearson"] == pytest.approx(ours.metrics["pearson"].value, abs=1e-5)


@needs_mteb
@pytest.mark.parametrize("data", ["giccs-sample", "release"])
def test_mteb_accepts_the_metadata(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_release(tmp_path / "release")
    embeddings.export_task(read_benchmark(data).first(2), ["with"], tmp_path)
    (module,) = tmp_path.glob("*_pairwise.py")
    (task,) = runpy.run_path(str(module))["TASKS"]
    task.metadata.model_validate(task.metadata.model_dump())
    assert task.metadata.is_filled() == (data == "giccs-sample")
    assert task.metadata.intext_citation() == r"\cite{asaadi2022giccs}"


@needs_mteb
def test_the_licences_are_those_of_mteb():
    from mteb.abstasks.task_metadata import Licenses

    assert set(get_args(Licenses)) - {"not specified", "multiple"} == embeddings.LICENSES


@needs_mteb
def test_mteb_reads_our_json(static_encoder, benchmark, tmp_path):
    from mteb.results import TaskResult

    result = evaluate_task(PairwiseSTS(resamples=2), open_model(str(static_encoder)), benchmark)
    (path,) = embeddings.write_results([result], tmp_path, "de")
    read = TaskResult.from_disk(path, load_historic_data=False)
    assert read.task_name == "giccs_benchmark_pairwise_without_history"
    assert read.scores["test"][0]["main_score"] == result.metrics["spearman"].value
