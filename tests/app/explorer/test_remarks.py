"""German remarks: those that computations really return, and unknown ones as they are."""

import math

import numpy as np
import pytest

import bws
from bws.records import Judgment
from bws.scoring.rank_sets import notes_on_ranks
from bws.split_half import SPLIT_QUESTIONS
from bws.stats.clusters import few_clusters_note, too_few_clusters_note
from bws.stats.estimates import Estimate
from giccs.description.statistics import richness
from giccs.measures.annotator_uncertainty import UNDEFINED
from giccs.measures.metrics import correlations, with_coarse_note, with_tails_note
from giccs.tasks.answer_parsing import OUTCOMES
from giccs.tasks.generated_choices import _remark
from giccs_app.explorer.labels.remarks import FIRST_MARK, local_remark, translations

CONSTANT = correlations(np.ones(9), np.arange(9.0), np.arange(9), resamples=0)["spearman"].reason
FEW = correlations(np.ones(1), np.ones(1), np.zeros(1, int), resamples=0)["spearman"].reason
MISSING = correlations(
    np.array([math.nan, 1, 2]), np.arange(3.0), np.arange(3), resamples=0
)["spearman"].reason  # fmt: skip
TOO_SHORT = richness("a b a c").reasons["mtld"]
RANKS = dict.fromkeys(
    notes_on_ranks(
        np.array([1, math.nan, 1, 1]),
        np.array([4, math.nan, 4, 4]),
        np.zeros(4, int),
        np.array([0, -1, 1, 1]),
    )
)
UNANSWERED = _remark({"answers": dict.fromkeys(OUTCOMES, 2), "gold_ties": 3})
UNITS = (
    "annotators", "dialogues", "groups", "items", "pairs", "questions", "resamples", "tuples",
)  # fmt: skip
ENGLISH = (
    "interval",
    "equal",
    "items",
    "annotators",
    "dialogues",
    "reproducibility",
    " are ",
    "needs",
    "words",
    "turn",
    "answers",
    "questions",
    "option,",
    "count",
)

COARSE = with_coarse_note(Estimate(0.9, 0.8, 0.95, 9), np.full(9, 2)).reason
SKEWED = with_tails_note(Estimate(0.5, 0.4, 0.6, 9), np.arange(9.0) ** 8).reason


@pytest.mark.parametrize(
    "remark",
    [
        *(few_clusters_note(7, unit) for unit in UNITS),
        *(too_few_clusters_note(2, unit) for unit in UNITS),
        *SPLIT_QUESTIONS.values(),
        *(f"all, by {split}: {CONSTANT}" for split in SPLIT_QUESTIONS),
        *(f"source=spoken, by {split}: {CONSTANT}" for split in SPLIT_QUESTIONS),
        UNANSWERED, TOO_SHORT, f"MTLD of 3-turn find_hotel: {TOO_SHORT}.",
        UNDEFINED, CONSTANT, FEW, MISSING, *RANKS, SKEWED, COARSE,
        few_clusters_note(6, "sentence pairs"), few_clusters_note(6, "effective domains"),
        "4 rounds, 96 judgments, 15 of audit tuples (78.7% of their pairs ordered rightly); target 0.9",
        "continue: not yet passed: posterior",
        f"all: {CONSTANT}; {few_clusters_note(6, 'dialogues')}",
    ],
)  # fmt: skip
def test_remarks_of_computations_are_german(remark):
    german = local_remark(remark, "de")
    assert german != remark
    assert not any(word in german.replace("Items", "") for word in ENGLISH)
    assert local_remark(remark, "en") == remark


@pytest.mark.parametrize("item", ["people", "undefined", "none", "texts", "a;b", "all equal"])
def test_ids_are_not_translated_and_may_have_any_characters(item):
    records = [Judgment((item, "b", "c"), item, "c")]
    control, *_ = bws.judgments_from_records(records, control=[item]).notes
    german = local_remark(f"{control}; {few_clusters_note(7, 'items')}", "de")
    assert f"Kontroll-Items ({item}), " in german
    assert german.endswith("; 7 Items: Das Intervall ist bei weniger als 20 nur eine Näherung")
    reason = f"1 prediction is infinite (that of item {item}): Pearson's r is undefined"
    assert f"(die von Item {item})" in local_remark(reason, "de")


def test_an_id_with_a_character_for_private_use_remains():
    item = f"x{chr(FIRST_MARK)}"
    reason = f"1 prediction is infinite (that of item {item}): Pearson's r is undefined"
    assert local_remark(reason, "de") == reason


def test_numbers_are_german():
    assert local_remark("accepts 1%", "de") == "accepts 1%"
    interval = "shown first rather than last: log odds of best -0.52 [-0.70, -0.34], p = 0.010"
    assert "-0,52 [-0,70; -0,34], p = 0,010" in local_remark(interval, "de")
    remark = (
        "no signal: the quantiles of the correlation with the true scores are 0.1 (5 %), 0.4 (95 %)"
    )
    assert local_remark(remark, "de").endswith("sind 0,1 (5 %); 0,4 (95 %)")


def test_unknown_remarks_remain():
    assert local_remark("the cat sat on 5 mats", "de") == "the cat sat on 5 mats"


def test_units_of_notes_have_translations():
    assert set(UNITS) <= set(translations("de")["words"])
