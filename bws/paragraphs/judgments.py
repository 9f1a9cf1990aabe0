"""Sentences on judgments, their agreement, reliability and scores, and the verdict on models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.paragraphs import Sentence

if TYPE_CHECKING:
    from bws.chance_agreement import Agreement
    from bws.components import Generalisability
    from bws.model_verdict import Verdicts
    from bws.records import Judgments, Scores
    from bws.split_half import Reliability

SCORE_TEXTS = ("counting", "best-worst-logit")
"""Methods that have a text of their own."""


def study_sentences(judgments: Judgments) -> Iterator[Sentence]:
    """Yield the numbers of a study, and what a reviewer asks: control items, exclusions, skipped rows."""
    tuples = judgments.tuples
    models = len(set(judgments.annotator_of[judgments.by_model].tolist()))
    people = len(judgments.annotators) - models
    values = {
        "items": tuples.n_scored,
        "groups": len(tuples.groups),
        "tuples": len(tuples),
        "k": tuples.members.shape[1],
        "judgments": len(judgments),
        "per_tuple": len(judgments) / len(tuples),
        "annotators": people or models,
        "models": models,
        "controls": len(tuples.controls),
        "excluded": judgments.n_excluded,
        "variants": len(judgments.variants.spellings) if judgments.variants else 0,
        "rows": judgments.n_left_out,
    }
    has_unnamed = bool((judgments.annotator_of < 0).any())
    yield Sentence(f"study_{_kind_of_annotators(people, models, has_unnamed)}", values)
    conditions = {
        "study_groups": len(tuples.groups) > 1,
        "study_adaptive": judgments.is_adaptive,
        "study_with_models": models > 0 and people and not has_unnamed,
        "study_controls": tuples.controls,
        "study_excluded": judgments.n_excluded,
        "study_skipped": judgments.left_out,
        "study_variants": judgments.variants is not None and judgments.variants.merged,
        "study_simulated": judgments.is_simulated,
    }
    for name, holds in conditions.items():
        if holds:
            yield Sentence(name, values)


def _kind_of_annotators(people: int, models: int, has_unnamed: bool) -> str:
    """Return the end of the name of the sentence on who judged."""
    if has_unnamed:
        return "unnamed"
    if people:
        return "one" if people == 1 else "several"
    return "models" if models > 1 else "model"


def reliability_sentences(
    reliability: Reliability, components: Generalisability | None = None
) -> Iterator[Sentence]:
    """Yield the reliability of all tuples by each split, and from variance components."""
    signature = reliability.signature
    by_split = {signature["split"]: reliability.groups, **reliability.splits}
    name = "reliability" if signature["trials"] > 1 else "reliability_one_split"
    yield Sentence(name, {"trials": signature["trials"], "seed": signature["seed"]})
    if signature["odd"] == "second":
        yield Sentence("reliability_odd")
    for split, (group, *_) in by_split.items():
        values = {
            f"{name}_{value}": number
            for name in ("pearson", "spearman")
            for value, number in (
                ("halves", getattr(group, name).mean),
                ("corrected", getattr(group, name).spearman_brown),
            )
        }
        yield Sentence(f"reliability_{split}", values)
        if group.missing_items:
            name = "reliability_zero" if signature["missing"] == "zero" else "reliability_missing"
            yield Sentence(name, {"items": group.missing_items})
    if components:
        yield Sentence("reliability_components", {"reliability": components.reliability})


def agreement_sentences(agreement: Agreement, n_study: int) -> Iterator[Sentence]:
    """Yield alpha and strong agreement of all tuples, and what is left out.

    n_study: number of judgments of the study; those of adaptive tuples and of control items do not count.
    """
    group, *_ = agreement.groups
    counted, n_judgments = agreement.judgments, np.bincount(agreement.judgments.tuple_of)
    if n_left_out := n_study - len(counted):
        values = {"n": n_left_out, "judgments": len(counted), "tuples": group.tuples}
        yield Sentence("agreement_left_out", values)
    if n_single := int(np.count_nonzero(n_judgments == 1)):
        yield Sentence("agreement_single", {"tuples": n_single})
    has_interval = not math.isnan(group.alpha["both"].low)
    yield Sentence(f"agreement_alpha{'_intervals' if has_interval else ''}", dict(group.alpha))
    yield Sentence(
        "agreement_strong", {**group.strong, "share": 100 * agreement.settings["strong"]}
    )


def score_sentences(scores: Scores) -> Iterator[Sentence]:
    """Yield method and scale of scores, and what their intervals are, if an item has one."""
    signature: Mapping[str, Any] = scores.signature
    method = str(signature["method"])
    if models := signature.get("models"):
        values = {"models": ", ".join(models), "n": signature["model_judgments"]}
        yield Sentence("score_prediction_powered", values)
    else:
        known = method in SCORE_TEXTS
        yield Sentence(f"score_{method}" if known else "score_other", {"method": method})
    if anchor := signature.get("anchor"):
        yield Sentence("score_anchored", anchor)
    else:
        yield Sentence(f"scale_{signature['scale']}")
    if signature.get("pooled"):
        yield Sentence("score_pooled")
    has_score = ~np.isnan(scores.score)
    if scores.low is None or np.isnan(scores.low).all():
        return
    kind = "bootstrap" if signature.get("bootstrap") else "model"
    yield Sentence(f"score_intervals_{kind}", {"resamples": signature.get("bootstrap", 0)})
    yield Sentence(f"score_cluster_{signature.get('cluster') or 'judgment'}")
    if n := int(np.count_nonzero(np.isnan(scores.low) & has_score)):
        yield Sentence("score_intervals_missing", {"items": n})
    if scores.rank_low is not None and not np.isnan(scores.rank_low).all():
        yield Sentence("score_ranks")


def verdict_sentences(verdicts: Verdicts) -> Iterator[Sentence]:
    """Yield the test, and the decision on each model."""
    yield Sentence("verdict", {"epsilon": verdicts.models[0].test.epsilon})
    for model in verdicts.models:
        test = model.test
        decision = "none" if test.no_verdict else "may" if test.may_replace else "may_not"
        values = {
            "model": model.name,
            "rate": test.winning_rate,
            "advantage": test.advantage,
            "annotators": len(test.comparisons),
            "reason": test.no_verdict,
        }
        yield Sentence(f"verdict_{decision}", values)


def version_sentence() -> Sentence:
    """Return the sentence on the version of giccs."""
    from importlib.metadata import version

    return Sentence("version", {"version": version("giccs")})
