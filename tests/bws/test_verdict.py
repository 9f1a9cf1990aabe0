"""bws.verdict and giccs verdict: verdicts on models, with the evidence."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import bws
from bws.annotators import annotator_report
from bws.base.problems import InputError
from bws.cli import verdict as command
from bws.files import write_judgments
from bws.model_savings import pilot_savings
from bws.simulation import simulate

from .model_judgments import as_model, design, study, together

GROUPS = {"groups": 20, "items": 6}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of people, and of a careful, a careless and a position-biased model."""
    monkeypatch.chdir(tmp_path)
    for name, options in {
        "careful": {"model_noise": 0.2},
        "careless": {"model_noise": 0.2, "careless": 1.0},
        "biased": {"model_noise": 0.4, "position_bias": 3.0},
    }.items():
        people, model = study(runs=2, **GROUPS, **options)
        named = replace(model, annotators=np.array([f"model:causal:{name}@main"], dtype=object))
        write_judgments(named, f"{name}.csv")
    write_judgments(people, "people.csv")
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(command, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def test_verdicts_on_three_models(files):
    names = ("careful", "careless", "biased")
    result = bws.verdict("people.csv", [f"{name}.csv" for name in names])
    assert [each.name for each in result.models] == [
        f"causal:{name}@main" for name in sorted(names)
    ]
    biased, careful, careless = result.models
    assert careful.sentence == (
        "causal:careful@main: may replace annotators: winning rate 1.00 ≥ 0.5, 4 of 4 annotators, "
        "epsilon 0.1"
    )
    for model in (biased, careless):
        assert "may not replace annotators: winning rate 0.00 < 0.5" in model.sentence
    assert biased.positions.best.low > 1
    assert biased.audit.positions[0].best.low > 0.5
    assert (
        careful.audit.consistency["orders"].joint.low
        > biased.audit.consistency["orders"].joint.high
    )
    assert careless.agreement.answers["best"].model.value == pytest.approx(0.25, abs=0.05)
    assert careless.positions == result.annotators.annotators[-1].positions
    people = annotator_report("people.csv")
    assert repr(result.annotators.annotators[:4]) == repr(people.annotators)
    assert result.alpha == bws.agreement("people.csv").groups[0].alpha["both"].value


def test_the_data_frame_has_a_row_per_model(files):
    frame = bws.verdict("people.csv", ["careful.csv", "careless.csv"]).to_frame()
    assert frame["model"].tolist() == ["causal:careful@main", "causal:careless@main"]
    assert frame["may_replace"].tolist() == ["yes", "no"]
    assert frame["winning_rate"].tolist() == [1.0, 0.0]
    assert {"advantage", "advantage_low", "advantage_high", "tuples"} < set(frame.columns)


def test_the_command_prints_a_sentence_per_model_and_the_tables(files):
    output = run(
        "people.csv", "--model-judgments", "careful.csv", "--model-judgments", "careless.csv"
    ).stdout
    first = output.splitlines()[0]
    assert first.startswith("causal:careful@main: may replace annotators: winning rate 1.00 ≥ 0.5")
    assert "causal:careless@main: may not replace annotators" in output
    assert "another prompt: no tuple was judged with two prompts" in output
    for header in (
        "annotator left",
        "people with each",
        "shown 1 of 4",
        "same answer in",
        "model:causal",
    ):
        assert header in " ".join(output.split())
    markdown = run("people.csv", "--model-judgments", "careful.csv", "--format", "markdown").stdout
    for title in (
        "Verdict",
        "Alternative annotator test",
        "Agreement with people",
        "Answers of the model per position",
        "Consistency of the model",
        "Annotators",
    ):
        assert f"### {title}" in markdown
    csv = run(
        "people.csv", "--model-judgments", "careful.csv", "--format", "csv"
    ).stdout.splitlines()
    assert len(csv) == 2
    assert csv[0].startswith("model,may_replace,winning_rate")
    columns = ("--format", "csv", "--columns", "model,annotator,p")
    tests = run("people.csv", "--model-judgments", "careful.csv", *columns).stdout
    assert len(tests.splitlines()) == 5


def test_json_has_the_same_content(files):
    document = json.loads(run("people.csv", "--model-judgments", "careful.csv", "--json").stdout)
    (model,) = document["models"]
    assert model["model"] == "model:causal:careful@main"
    assert model["test"]["may_replace"] is True
    assert len(model["test"]["annotators"]) == 4
    assert model["tuples"] == {"common": 240, "people_only": 0, "model_only": 0}
    assert model["audit"]["consistency"]["prompts"]["best"]["value"] is None
    assert model["agreement"]["answers"]["joint"]["chance"] == pytest.approx(1 / 12)
    assert document["signature"]["epsilon"] == 0.1
    strict = json.loads(
        run("people.csv", "--model-judgments", "careful.csv", "--json", "--epsilon", 0).stdout
    )
    assert strict["models"][0]["test"]["annotators"][0]["p"] > model["test"]["annotators"][0]["p"]


def test_files_of_the_wrong_kind(files):
    people_as_models = run("people.csv", "--model-judgments", "people.csv", code=2).output
    assert "960 of 960 judgments are by people" in people_as_models
    models_as_people = run("careful.csv", "--model-judgments", "careless.csv", code=2).output
    assert "480 of 480 judgments are by language models" in models_as_people
    assert "careful.csv" in models_as_people
    twice = run(
        "people.csv", "--model-judgments", "careful.csv", "--model-judgments", "careful.csv", code=2
    ).output
    assert "model:causal:careful@main has judgments in several files" in twice
    assert "Missing option '--model-judgments'" in run("people.csv", code=2).output
    with pytest.raises(ValueError, match="no judgments of models"):
        bws.verdict("people.csv", [])


def test_tuples_that_one_side_judged_are_counted(files):
    people, model = study(0.2, **GROUPS)
    result = bws.verdict(
        people.select(people.tuple_of >= 5),
        model.select((model.tuple_of < 200) & (model.tuple_of != 9)),
    )
    (each,) = result.models
    assert (each.tuples, each.n_people_only, each.n_model_only) == (194, 41, 5)
    assert result.result_table().notes == [
        "41 tuples that only people judged do not count",
        "5 tuples that only the model judged count in its audit alone",
    ]
    other = as_model(study(0.2)[1])
    with pytest.raises(
        InputError, match=r"model:m@1 judged no tuple that people judged; expected the same"
    ):
        bws.verdict(people, other)
    of_three, _ = design(items=6, k=3)
    short = as_model(simulate(of_three, np.arange(6.0), 1))
    with pytest.raises(
        InputError, match=r"no tuple that people judged \(tuples of 4 and 3 items\)"
    ):
        bws.verdict(people, short)


def test_adaptive_tuples_do_not_count():
    people, model = study(0.2, **GROUPS)
    purpose = np.where(people.tuple_of % 2 == 0, "adaptive", "audit").astype(object)
    adaptive = replace(people, columns={"purpose": purpose})
    result = bws.verdict(adaptive, model)
    assert result.models[0].tuples == 120
    assert result.models[0].n_model_only == 120
    assert "480 of adaptive tuples, whose items are hard to order" in result.notes[0]


def test_no_verdict_says_what_it_needs():
    people, model = study(0.2, items=8)
    (each,) = bws.verdict(people, model).models
    assert each.sentence == (
        "m@1: no verdict: the test needs 3 annotators with 30 tuples each that the model and other "
        "annotators judged too; the annotators with the most have 16, 16, 16"
    )
    verdicts = bws.verdict(people, model)
    assert verdicts.to_frame()["may_replace"].tolist() == ["no verdict"]
    assert repr(verdicts).startswith("m@1: no verdict: the test needs 3 annotators")


def test_fresh_tuples_and_pairs_have_no_undefined_numbers_as_text():
    of_two, truth = design(items=30, k=2)
    people = simulate(of_two, truth, 4, noise=0.5, per_tuple=1)
    model = replace(as_model(simulate(of_two, truth, 1)), shown=None)
    (each,) = bws.verdict(people, model).models
    assert each.test.verdict.startswith("no verdict")
    assert each.agreement.tuples == 0
    judged_by_all = simulate(of_two, truth, 4, noise=0.5)
    for result in (
        bws.verdict(people, model),
        bws.verdict(judged_by_all, as_model(simulate(of_two, truth, 2))),
    ):
        texts = [table.text() for table in result.result_tables()]
        notes = [note for table in result.result_tables() for note in table.notes]
        assert "nan" not in " ".join([*texts, *notes])


def test_tuples_of_one_group_of_a_study_are_one_cluster():
    people, model = study(0.2, runs=2, **GROUPS)
    first = model.tuples.group_of_tuple[model.tuple_of] == 0
    rows = [row for row, is_first in zip(model.records(), first, strict=True) if is_first]
    one_group = as_model(replace(bws.judgments_from_records(rows[::2])))
    (each,) = bws.verdict(people, one_group).models
    assert each.agreement.tuples == 12
    assert np.isnan(each.agreement.answers["best"].model.low)
    assert "1 groups: no interval, which needs 5" in each.agreement.notes
    assert "1 groups: no interval, which needs 5" in each.audit.notes


def test_the_name_of_a_single_model_is_printed_once():
    people, model = study(0.2, **GROUPS)
    tables = bws.verdict(people, model).result_tables()
    assert [table.text().count("m@1") for table in tables] == [1, 0, 0, 0, 0, 0, 1]
    assert all("m@1" in table.csv() for table in tables)


def test_models_in_one_file_are_judged_apart():
    people, first = study(0.2, **GROUPS)
    second = replace(
        study(0.2, careless=1.0, **GROUPS)[1], annotators=np.array(["model:m@2"], dtype=object)
    )
    both = bws.verdict(people, together(first, second))
    assert [each.test.may_replace for each in both.models] == [True, False]
    alone = bws.verdict(people, first)
    assert repr(both.models[0].document()) == repr(alone.models[0].document())
    assert "m@2: " not in "".join(alone.result_tables()[2].notes)


def test_savings_are_those_of_a_pilot_study(files):
    document = json.loads(run("people.csv", "--model-judgments", "careful.csv", "--json").stdout)
    assert document["models"][0]["savings"]["notes"] == [
        "savings unknown: 4 annotators: no interval, which needs 5; cluster by tuple (intervals then apply "
        "to these annotators only), or collect judgments of more annotators"
    ]
    people, model = study(0.4, runs=2, annotators=6, **GROUPS)
    verdicts = bws.verdict(people, model)
    assert verdicts.models[0].savings.document() == pilot_savings(people, model).document()
    table = verdicts.result_tables()[-2]
    assert [row[1] for row in table.rows] == [10, 20, 30, 50, 100]
    assert all(row[2] <= len(people) for row in table.rows)
