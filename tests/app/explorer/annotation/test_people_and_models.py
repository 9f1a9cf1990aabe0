"""The section "People and models": its numbers, and what the page shows of simulated models."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from bws import agreement, verdict
from bws.files import as_judgments, write_judgments
from bws.simulation import simulate
from giccs_app.explorer.annotation.model_data import (
    compare_people_and_models,
    judgments_of_model,
    parting_answers,
    people_agreement,
    tuple_votes,
)
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.study import load

GOOD, WEAK = "model:chat:good@2026", "model:package:weak@1"

CHECKS_CHARTS = True


def simulated_model(study, name, runs, noise):
    """Return judgments of the tuples of a study by a simulated annotator in the place of a model."""
    tuples = study.judgments.tuples
    truth = np.zeros(len(tuples.items))
    truth[study.index_in_judgments] = study.items["score"].to_numpy()
    judgments = simulate(tuples, truth, runs, noise=noise, seed=runs)
    run = np.array([str(number) for number in judgments.annotator_of], dtype=object)
    return replace(
        judgments,
        annotator_of=np.zeros(len(judgments), np.int32),
        annotators=np.array([name], dtype=object),
        columns={"prompt": np.full(len(run), "judge-de-1", dtype=object), "run": run},
    )


@pytest.fixture(scope="module")
def people():
    return load().judgments


@pytest.fixture(scope="module")
def models():
    study = load()
    return [simulated_model(study, GOOD, 2, 0.2), simulated_model(study, WEAK, 3, 0.9)]


@pytest.fixture(scope="module")
def files(models, tmp_path_factory):
    """Return the arguments of giccs explore for the judgments of both models."""
    folder = tmp_path_factory.mktemp("models")
    for number, judgments in enumerate(models):
        write_judgments(judgments, folder / f"{number}.csv")
    return [part for number in (0, 1) for part in ("--model-judgments", folder / f"{number}.csv")]


def votes(judgments, column):
    """Return the items that are the answers to each set of items, in a plain loop."""
    counts = {}
    for judgment in judgments.records():
        key = (judgment.group, frozenset(judgment.items))
        counts.setdefault(key, Counter())[getattr(judgment, column)] += 1
    return counts


def test_agreement_of_a_person_is_the_mean_share_of_the_others_answers(people):
    result = people_agreement(people)
    for annotator in ("simulated-1", "simulated-4"):
        shares = []
        counts = votes(people, "best")
        for judgment in people.records():
            if judgment.annotator == annotator:
                others = counts[judgment.group, frozenset(judgment.items)] - Counter(
                    [judgment.best]
                )
                shares.append(others[judgment.best] / others.total())
        assert result[annotator]["best"].value == pytest.approx(np.mean(shares))
    observed = agreement(people).groups[0].observed
    for name in ("best", "worst"):
        mean = np.mean([each[name].value for each in result.values()])  # 600 judgments each
        assert mean == pytest.approx(observed[name].value)


def test_models_are_compared_with_people_and_listed_after_them(people, models):
    compared = compare_people_and_models(people, models)
    verdicts = verdict(people, models)
    assert [each.is_model for each in compared.annotators] == [False] * 5 + [True] * 2
    for row, each in zip(compared.annotators[5:], verdicts.models, strict=True):
        assert row.statistics.annotator == each.model
        for name in ("best", "worst"):
            assert row.same[name] == each.agreement.answers[name].model
    assert judgments_of_model(models, WEAK).annotators.tolist() == [WEAK]


def test_parting_answers_are_those_of_a_plain_loop(people, models):
    frame = parting_answers(people, models[1])
    expected, items = set(), people.tuples.items
    for name in ("best", "worst"):
        by_people, by_model = votes(people, name), votes(models[1], name)
        for key, answers in by_people.items():
            (item, count), *_ = answers.most_common()
            mine = by_model[key]
            if count >= 4 and mine[item] < max(mine.values()):
                sureness = count / 5 * (1 - mine[item] / 3)
                expected.add((name, item, count / 5, round(sureness, 9)))
    rows = [
        (row["answer"], items[row["people_item"]], row["people_share"],
         round(row["people_share"] * (1 - row["model_with_people"]), 9))
        for row in frame.iter_rows(named=True)
    ]  # fmt: skip
    assert set(rows) == expected
    assert [row[-1] for row in rows] == sorted((row[-1] for row in rows), reverse=True)
    assert len(parting_answers(people, models[0])) < len(frame)


def judgments_of(*answers, annotator=""):
    """Return judgments of one tuple: (best, worst) of different people, or of the runs of a model."""
    return as_judgments(
        [
            {"tuple_id": "t1", "item1": "a", "item2": "b", "item3": "c", "best": best, "worst": worst,
             "annotator": annotator or f"w{n}", "prompt": "p", "run": str(n)}
            for n, (best, worst) in enumerate(answers)
        ]
    )  # fmt: skip


def test_ties_and_weak_agreement_do_not_part():
    model = judgments_of(("a", "b"), ("c", "b"), annotator="model:m")
    four = judgments_of(*[("a", "c")] * 3, ("a", "b"))
    assert parting_answers(four, model).is_empty()  # best: a tie of the model; worst: 3 of 4 people
    assert parting_answers(judgments_of(("a", "c")), model).is_empty()  # one person
    three = judgments_of(*[("a", "c")] * 3)
    (row,) = parting_answers(three, model).rows(named=True)
    assert (row["tuple"], row["answer"]) == ("t1", "worst")
    assert (row["people_share"], row["model_share"], row["model_with_people"]) == (1, 1, 0)
    counts = tuple_votes(three, model, "t1").drop("item").rows()
    assert counts == [(3, 0, 1, 0), (0, 0, 0, 2), (0, 3, 1, 0)]
    assert tuple_votes(three, model, "t2").is_empty()


def texts(app):
    kinds = ("caption", "markdown", "info", "error", "warning")
    return "\n".join(str(element.value) for kind in kinds for element in getattr(app, kind))


def frame_with(app, *columns):
    (frame,) = [each.value for each in app.dataframe if {*columns} <= {*each.value.columns}]
    return frame


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_section_shows_verdicts_people_and_models(opened, files, people, models, language):
    app = opened(*files, page="annotation", lang=language)
    for each in verdict(people, models).models:
        text = text_of(
            "models_section.may_not_replace", language, model=f"`{each.name}`", won=0, total=5,
            epsilon="0,1" if language == "de" else "0.1",
        )  # fmt: skip
        assert text in texts(app)
    table = frame_with(app, "kind", "same_best", "first_worst")
    assert table["annotator"].tolist()[-2:] == [GOOD, WEAK]
    assert table["kind"].nunique() == 2
    assert (
        table["same_best"][5]
        == verdict(people, models).models[0].agreement.answers["best"].model.value
    )


def test_people_and_models_differ_by_shape_and_colour(opened, files, chart_rows):
    app = opened(*files, page="annotation", same="worst")
    rows = chart_rows(app, '"kind"', "same worst")
    assert {row["annotator"] for row in rows if row.get("kind") == "model"} == {GOOD, WEAK}
    (spec,) = [
        chart.proto.spec for chart in app.get("vega_lite_chart") if "same worst" in chart.proto.spec
    ]
    assert '"diamond"' in spec
    assert '"circle"' in spec


def test_a_tuple_opens_with_the_answers_of_people_and_the_model(
    opened, files, people, models, text_table
):
    answers = parting_answers(people, models[1])
    tuple_id = answers["tuple"][0]
    app = opened(*files, page="annotation", judge=WEAK, tuple=tuple_id, answer=answers["answer"][0])
    assert (
        frame_with(app, "people_share", "model_share")["tuple"].tolist()
        == answers["tuple"].to_list()
    )
    (_, *head), *rows = text_table(app)
    assert head == ["people: best", "people: worst", "model: best", "model: worst"]
    counts = tuple_votes(people, models[1], tuple_id).drop("item").rows()
    assert [tuple(map(int, row[1:])) for row in rows] == counts
    app.button(key="page.open_dialogue parting").click().run()
    assert app.query_params["page"] == "dialogues"
    judgments = frame_with(app, "annotator", "alone")
    assert {GOOD, WEAK} <= {*judgments["annotator"]}
    assert not judgments[judgments["annotator"] == WEAK]["alone"].fillna(False).any()


def test_a_model_selected_elsewhere_has_its_judgments_on_the_page(opened, files):
    app = opened(*files, page="annotation", annotator=WEAK)
    assert f"`{WEAK}`" in texts(app)
    assert len(frame_with(app, "tuple", "dialogue")) == 500  # of 1,800, the first ones


def test_files_of_the_wrong_kind_are_refused_and_the_rest_is_shown(opened, files, tmp_path, people):
    people_file = tmp_path / "people.csv"
    write_judgments(people, people_file)
    app = opened("--model-judgments", people_file, *files[:2], page="annotation")
    assert "3000 of 3000 judgments are by people; expected those of language models" in texts(app)
    assert frame_with(app, "kind", "same_best")["annotator"].tolist()[-1] == GOOD
    app = opened("--judgments", files[1], page="annotation")
    assert "1200 of 1200 judgments are by language models; expected those of people" in texts(app)
    app = opened(*files[:2], *files[:2], page="annotation")
    assert "has judgments in several files" in texts(app)


def test_without_judgments_of_models_there_is_no_section(seen):
    assert text_of("models_section.title", "en") not in [
        each.value for each in seen(page="annotation").subheader
    ]
