"""The analyses of judgments of this package: agreement, annotators, reliability, components, plan.

Modules with their computations are imported when they run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bws.analysis import pictures
from bws.analysis.analysis import Also, Analysis, Answers, Picture
from bws.base.notes import note
from bws.base.options import MAX_RESAMPLES, MAX_SEED, option
from bws.base.tables import MAX_ROWS_SHOWN

if TYPE_CHECKING:
    from bws.absolute.scores import AbsoluteScale
    from bws.annotators import AnnotatorReport
    from bws.chance_agreement import Agreement
    from bws.components import Generalisability
    from bws.history import StudyHistory
    from bws.paragraphs import Sentence
    from bws.planning import Plan
    from bws.raw_agreement import AnnotatorPairs
    from bws.split_half import Reliability, ReliabilityCurve
    from bws.split_items import SplitItems


@dataclass(frozen=True)
class AgreementSettings:
    """Settings of agreement."""

    strong: float = option(
        0.8, "Minimum share of a tuple's annotators with the same answer for strong agreement.",
        bounds=(0, 1), min_open=True, metavar="SHARE",
    )  # fmt: skip
    intervals: bool = option(
        False, "95 % intervals that generalise to other annotators and groups."
    )
    bootstrap: int = option(0, None, bounds=(0, MAX_RESAMPLES), deprecated="use --intervals")
    seed: int = option(0, "Random seed.", bounds=(0, MAX_SEED), metavar="S")


@dataclass(frozen=True)
class ReliabilitySettings:
    """Settings of reliability and plan."""

    trials: int = option(100, "Number of random splits.", bounds=(1, MAX_RESAMPLES), metavar="N")
    split: str | None = option(
        None,
        "Unit of the split: each tuple's judgments, the tuples, or the annotators.  [default: each that the "
        "judgments allow]",
        choices=("annotation", "tuple", "annotator"),
    )
    odd: str = option(
        "coin",
        "Half that gets the extra unit of an odd number: random, or always the second (2 against 3).",
        choices=("coin", "second"),
    )
    missing: str = option(
        "drop",
        "Treatment of items that one half does not score: omit them from the trial, or use 0.",
        choices=("drop", "zero"),
    )
    target: float = option(
        0.9, "Target reliability of the scores for --curve, --history and --plan.",
        bounds=(0, 1), min_open=True, max_open=True, metavar="R",
    )  # fmt: skip
    price: float | None = option(
        None, "Price per judgment; --plan shows costs.", bounds=(0, 1e6), metavar="P"
    )
    absolute: str | None = option(
        None,
        "Anchors, answers to single items: add the ceiling over all items on one scale for all groups, the "
        "ipsative limit of the scores, the means of groups, and the agreement of anchors with the scores.",
        is_file=True, metavar="ANCHORS",
    )  # fmt: skip
    dialogues: str | None = option(
        None,
        "With --absolute: dialogues or a benchmark; add the regression of the means of dialogues on words, "
        "turns and domain.",
        is_file=True, metavar="FILE",
    )  # fmt: skip
    seed: int = option(0, "Random seed.", bounds=(0, MAX_SEED), metavar="S")

    def __post_init__(self) -> None:
        if self.dialogues and not self.absolute:
            raise ValueError("--dialogues requires --absolute")


def _agreement(answers: Answers) -> Agreement:
    from bws.chance_agreement import agreement

    settings = answers.settings
    intervals = settings.intervals or settings.bootstrap > 0
    return agreement(answers.judgments, by=answers.by, strong=settings.strong, intervals=intervals)


def _pairs(answers: Answers) -> AnnotatorPairs:
    from bws.raw_agreement import annotator_pairs

    return annotator_pairs(answers.judgments)


def _annotators(answers: Answers) -> AnnotatorReport:
    from bws.annotators import annotator_report

    return annotator_report(answers.judgments)


def _split_items(answers: Answers) -> SplitItems:
    from bws.split_items import split_items

    return split_items(answers.judgments, seed=answers.settings.seed)


def _reliability(answers: Answers) -> Reliability:
    from bws.split_half import reliability

    settings = answers.settings
    return reliability(
        answers.judgments, by=answers.by, trials=settings.trials, split=settings.split,
        odd=settings.odd, missing=settings.missing, seed=settings.seed,
    )  # fmt: skip


def _agreement_sentences(answers: Answers) -> Iterator[Sentence]:
    from bws.paragraphs.judgments import agreement_sentences

    yield from agreement_sentences(answers.result(AGREEMENT), len(answers.judgments))


def _reliability_sentences(answers: Answers) -> Iterator[Sentence]:
    from bws.paragraphs.judgments import reliability_sentences

    yield from reliability_sentences(answers.result(RELIABILITY), answers.computed(COMPONENTS))


def _curve(answers: Answers) -> ReliabilityCurve:
    from bws.split_half import reliability_curve

    settings = answers.settings
    return reliability_curve(
        answers.judgments, target=settings.target, trials=settings.trials, odd=settings.odd,
        seed=settings.seed,
    )  # fmt: skip


def _components(answers: Answers) -> Generalisability:
    from bws.components import generalisability

    return generalisability(answers.judgments.canonical)


def _history(answers: Answers) -> StudyHistory:
    from bws.history import study_history

    return study_history(answers.judgments, answers.settings.target)


def _absolute(answers: Answers) -> AbsoluteScale:
    from bws.absolute.files import read_anchors
    from bws.absolute.regression import mean_regression
    from bws.absolute.scores import absolute_scale

    settings = answers.settings
    if settings.absolute is None:
        raise ValueError(note("no anchors; expected --absolute ANCHORS"))
    scale = absolute_scale(answers.judgments, read_anchors(settings.absolute), seed=settings.seed)
    if settings.dialogues is None:
        return scale
    return replace(scale, regression=mean_regression(scale.groups, settings.dialogues))


def _plan(answers: Answers) -> Plan | None:
    from bws.planning import Planner, plan

    settings = answers.settings
    planner = Planner.from_study(answers.judgments.canonical, answers.result(COMPONENTS))
    return plan(planner, settings.target, settings.price) if planner else None


PAIRS = Analysis("pairs", _pairs)
PAIRS_PICTURE = Picture(
    "annotators", "matrix of all pairs of annotators", pictures.pairs, [PAIRS], max_annotators=40
)
ANNOTATORS = Analysis("annotators", _annotators)
SCALES_PICTURE = Picture(
    "scales", "scale of each annotator, from reversed to exact", pictures.scales, [ANNOTATORS]
)
SPLIT_ITEMS = Analysis("items", _split_items, max_rows=MAX_ROWS_SHOWN)
AGREEMENT = Analysis(
    "agreement", _agreement, AgreementSettings,
    has_parts=True,
    title="Agreement",
    summary="Compute inter-annotator agreement: Krippendorff's alpha and strong agreement.",
    example="""
    giccs agreement judgments.csv
    giccs agreement judgments.csv --metadata dialogues.jsonl --by source,n_turns --intervals
    giccs agreement judgments.csv --annotators --items --figure annotators=annotators.svg
    """,
    text="Krippendorff’s α of the judgments of the same tuples: 0 for random answers, 1 for equal ones. "
    "Strong agreement: at least 80 % of the annotators gave the same answer.",
    pictures=[
        Picture("agreement", "the agreement of each group", pictures.agreement),
        SCALES_PICTURE,
        PAIRS_PICTURE,
    ],
    sentences=_agreement_sentences,
    also={
        "annotators": Also("Add a report on each annotator, with flagged annotators.", [ANNOTATORS]),
        "items": Also(
            "Add items with intermediate scores on which annotators disagree systematically.", [SPLIT_ITEMS]
        ),
    },
)  # fmt: skip
CURVE = Analysis("curve", _curve)
COMPONENTS = Analysis("components", _components)
HISTORY = Analysis("history", _history)
PLAN = Analysis(
    "plan", _plan,
    tables=lambda plan: plan.result_tables(),
    absent=pictures.NO_PLAN,
)  # fmt: skip
ABSOLUTE = Analysis("absolute", _absolute, tables=lambda scale: scale.result_tables())
MEANS_PICTURE = Picture(
    "means", "mean absolute score of each group, with --absolute", pictures.means, [ABSOLUTE],
    is_on_request=True,
)  # fmt: skip
RELIABILITY = Analysis(
    "reliability", _reliability, ReliabilitySettings,
    has_parts=True,
    title="Reliability",
    summary="Estimate the reliability of the scores by split halves and from variance components.",
    example="""
    giccs reliability judgments.csv
    giccs reliability judgments.csv --metadata dialogues.jsonl --by source,n_turns
    giccs reliability judgments.csv --split annotator --curve
    giccs reliability judgments.csv --format latex --caption "Split-half reliability" > reliability.tex
    giccs reliability judgments.csv --absolute anchors.csv --dialogues dialogues.jsonl
    giccs reliability pilot.csv --plan --target 0.95 --price 0.05 --figure plan.svg
    """,
    text="Split-half reliability: the correlation between scores from two random halves of the judgments.",
    pictures=[
        Picture(
            "reliability",
            "reliability against the number of annotations, with the prediction and the target",
            pictures.reliability,
            [CURVE, PLAN],
        ),
        Picture("components", "variance components", pictures.components, [COMPONENTS]),
        Picture(
            "history", "reliability and agreement by number of judgments", pictures.history, [HISTORY],
            is_on_request=True,
        ),
        Picture(
            "frames", "scores after each tenth of the judgments, side by side", pictures.frames, [HISTORY],
            is_on_request=True,
        ),
        MEANS_PICTURE,
    ],
    sentences=_reliability_sentences,
    also={
        "curve": Also(
            "Add reliability as a function of the number of annotations, and the number required for "
            "--target.", [CURVE],
        ),
        "components": Also(
            "Add variance components of the scores, and the reliability that includes all errors.",
            [COMPONENTS],
        ),
        "history": Also(
            "Add reliability and agreement after each tenth of the judgments, and when --target is reached.",
            [HISTORY],
        ),
        "plan": Also(
            "Add --components, and the reliability of other designs: more tuples, annotations, annotators.",
            [COMPONENTS, PLAN],
        ),
        "absolute": Also("", [ABSOLUTE]),
    },
)  # fmt: skip
