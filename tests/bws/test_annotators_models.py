"""Language models beside people in the report on annotators."""

from dataclasses import replace

import numpy as np
import pytest

from bws.annotators import annotator_report
from bws.chance_agreement import agreement

from .model_judgments import as_model, study, together


def by_name(report):
    return {row.annotator: row for row in report.annotators}


def test_models_change_no_value_of_people_and_are_not_flagged():
    people, model = study(0.6, groups=8, items=6, careless=1.0)
    alone, both = annotator_report(people), annotator_report(people, [model])
    assert repr(both.annotators[:-1]) == repr(alone.annotators)
    assert both.positions == alone.positions
    assert both.annotators[-1].annotator == "model:m@1"
    assert both.annotators[-1].compliance == pytest.approx(0.5, abs=0.1)
    assert both.flagged == alone.flagged == ()
    assert "language models (model:...) are compared with people alone" in both.notes[-1]
    assert "model:m@1" in both.table()
    mixed = annotator_report(together(people, model))
    assert repr(mixed.annotators) == repr(both.annotators)
    assert mixed.notes == both.notes


def test_a_model_with_one_run_has_the_compliance_of_a_person_with_these_answers():
    people, model = study(0.9, groups=8, items=6)
    person = replace(model, annotators=np.array(["eve"], dtype=object), columns={})
    expected = by_name(annotator_report(together(people, person)))["eve"]
    found = by_name(annotator_report(people, [model]))["model:m@1"]
    for name in ("judgments", "compliance", "best_at", "same_answer", "place_p"):
        assert getattr(found, name) == getattr(expected, name)


def test_items_are_matched_by_group_and_id():
    people, model = study(0.3, groups=4, items=6)
    order = np.random.default_rng(0).permutation(len(model.tuples.items))
    inverse = np.argsort(order)
    tuples = model.tuples
    renumbered = replace(
        tuples,
        items=tuples.items[order],
        group_of_item=tuples.group_of_item[order],
        members=inverse[tuples.members].astype(np.int32),
    )
    one, two = (
        by_name(annotator_report(people, [judgments]))["model:m@1"]
        for judgments in (model, replace(model, tuples=renumbered))
    )
    assert repr(one) == repr(two)
    assert one.compliance > 0.8


def test_repeated_calls_of_a_model_do_not_narrow_its_intervals():
    """Five copies of a judgment are no more evidence than one."""
    people, model = study(0.6, items=30, position_bias=0.4)
    copies = as_model(
        replace(
            together(*[model] * 5),
            annotator_of=np.repeat(np.arange(5, dtype=np.int32), len(model)),
        )
    )
    once, often = (
        by_name(annotator_report(people, [judgments]))["model:m@1"] for judgments in (model, copies)
    )
    assert often.judgments == 5 * once.judgments
    assert often.scale_stderr > 0.9 * once.scale_stderr
    width = [row.positions.best.high - row.positions.best.low for row in (once, often)]
    assert width[1] > 0.9 * width[0]
    assert often.positions.best.p == pytest.approx(once.positions.best.p, rel=0.5)
    assert not np.isnan(once.place_p)
    assert np.isnan(often.place_p)


@pytest.mark.parametrize(
    ("seeds", "share"), [(15, 0.8), pytest.param(60, 0.88, marks=pytest.mark.nightly)]
)
def test_clustered_standard_errors_cover_the_position_effect(seeds, share):
    """The effect of judgments in five orders is without bias on average; intervals cover 0."""
    covered = []
    for seed in range(seeds):
        people, model = study(0.6, runs=5, items=16, seed=seed)
        effect = by_name(annotator_report(people, [model]))["model:m@1"].positions.best
        covered.append(effect.low <= 0 <= effect.high)
    assert np.mean(covered) >= share


def test_a_file_of_models_alone_names_them():
    _, model = study(0.6, runs=3, items=16, position_bias=3.0)
    report = annotator_report(model)
    assert [row.annotator for row in report.annotators] == ["model:m@1"]
    assert np.isnan(report.annotators[0].compliance)
    assert report.positions.best.low > 0
    width = report.positions.best.high - report.positions.best.low
    own = report.annotators[0].positions.best
    assert width == pytest.approx(own.high - own.low, rel=0.2)
    note = "judgments of one language model of the same tuple are compared like those of different"
    assert note in agreement(model).groups[0].notes[0]
    assert not agreement(study(0.6)[0]).groups[0].notes
