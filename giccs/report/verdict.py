"""The verdict on a study and its models: four questions, each answered by sentences and a small chart.

Are the scores reliable? Which items differ? Which annotators need review? Which model is best, and which are
not significantly worse? The numbers are those of `giccs reliability`, `score`, `agreement` and `compare`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from bws.analysis.analysis import Answers, Drawing, Translate
from bws.analysis.judgments import COMPONENTS, PLAN, RELIABILITY, ReliabilitySettings
from bws.base.notes import note
from bws.model_annotators import are_simulated
from giccs.report import verdict_charts as charts
from giccs.report.metric_titles import metric_title

if TYPE_CHECKING:
    from bws.annotators import AnnotatorReport, Flag
    from bws.records import Judgments, Scores
    from giccs.measures.results import Result
    from giccs.report.model_comparison import Leaderboard, RankedModel

METRICS = ("spearman", "accuracy")
"""Metrics by which models are ranked."""
MAX_NAMES = 10
"""Maximum number of names in a sentence; the document has all."""
MAX_MODELS = 10
"""Maximum number of models in a chart."""
NO_JUDGMENTS = note("unknown without the judgments behind the scores: --judgments FILE")
NO_RESULTS = note("unknown without results of models: giccs-eval MODEL -o FOLDER")
SIMULATED = note("the annotators are simulated: not results to report")
QUESTIONS = {
    "scores": "Are the scores reliable?",
    "items": "Which items differ?",
    "annotators": "Which annotators need review?",
    "models": "Which model is best?",
}
"""Name of a finding -> the question that it answers."""


@dataclass(frozen=True)
class Finding:
    """The answer to a question."""

    name: str
    """A key of `QUESTIONS`."""
    sentences: Sequence[str]
    """Notes, without capital and full stop."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """JSON-serialisable."""
    draw: Callable[[Translate], Drawing] | None = None
    opens: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the explorer's link to the evidence."""

    @property
    def text(self) -> str:
        """The sentences as a paragraph."""
        return " ".join(f"{text[:1].upper()}{text[1:]}." for text in self.sentences)

    def document(self) -> dict[str, Any]:
        """Return the finding as a JSON-serialisable dict."""
        return {"question": QUESTIONS[self.name], "sentences": [*self.sentences], **self.numbers}


def findings(judgments: Judgments | None, results: Sequence[Result]) -> list[Finding]:
    """Return the answers to the four `QUESTIONS`; where data are missing, what would be needed.

    judgments: those behind the scores. results: on the same data, with their predictions.

    >>> for finding in findings(None, []):
    ...     print(finding.text)
    Unknown without the judgments behind the scores: --judgments FILE.
    Unknown without the judgments behind the scores: --judgments FILE.
    Unknown without the judgments behind the scores: --judgments FILE.
    Unknown without results of models: giccs-eval MODEL -o FOLDER.
    """
    if judgments is None:
        unknown = ("scores", "items", "annotators")
        return [*(Finding(name, [NO_JUDGMENTS]) for name in unknown), model_finding(results)]
    scores = score_finding(judgments)
    if are_simulated(judgments.annotators):
        scores = replace(scores, sentences=[SIMULATED, *scores.sentences])
    return [
        scores,
        item_finding(judgments),
        annotator_finding(judgments),
        model_finding(results),
    ]


def score_finding(judgments: Judgments) -> Finding:
    """Return the reliability of the scores, and what more annotations would give."""
    if judgments.is_adaptive:
        return _stopping_finding(judgments)
    answers = Answers(judgments, ReliabilitySettings())
    opens = {"page": "annotation"}
    try:
        halves, study = answers.result(RELIABILITY), answers.result(COMPONENTS)
    except ValueError as error:
        return Finding("scores", [note("no reliability: {reason}", reason=str(error))], opens=opens)
    groups = {halves.signature["split"]: halves.groups[0]}
    groups |= {split: parts[0] for split, parts in halves.splits.items()}
    splits = {split: group.pearson.spearman_brown for split, group in groups.items()}
    reliability, plan = study.reliability, answers.result(PLAN)
    sentences = list(_split_sentences(splits))
    if not math.isnan(reliability.value):
        limits = {"r": reliability.value, "low": reliability.low, "high": reliability.high}
        sentences.append(
            note("with all errors, from variance components: {r:.2f}", **limits)
            if math.isnan(reliability.low)
            else note(
                "with all errors, from variance components: {r:.2f} [{low:.2f}, {high:.2f}]",
                **limits,
            )
        )
    if plan:
        sentences += _plan_sentences(plan.planner, plan.target)
    return Finding(
        "scores",
        sentences,
        {"splits": splits, "reliability": reliability.document()},
        lambda t: charts.reliability_strip(splits, reliability, ReliabilitySettings().target, t),
        opens,
    )


def _split_sentences(splits: Mapping[str, float]) -> Iterator[str]:
    """Yield the reliability by each split that is defined."""
    r = {split: splits.get(split, math.nan) for split in ("annotation", "tuple", "annotator")}
    texts = {
        "annotation": note("halves of each tuple's judgments: {r:.2f}", r=r["annotation"]),
        "tuple": note("halves of the tuples: {r:.2f}", r=r["tuple"]),
        "annotator": note("halves of the annotators: {r:.2f}", r=r["annotator"]),
    }
    defined = [text for split, text in texts.items() if not math.isnan(r[split])]
    if not defined:
        yield note("no split of the judgments gives a reliability")
        return
    values = "; ".join(defined)
    yield note("reliability by split halves (Spearman–Brown): {reason}", reason=values)


def _plan_sentences(planner: Any, target: float) -> Iterator[str]:
    from bws.planning import describe_annotation_needs

    yield describe_annotation_needs(target, planner)
    if planner.has_repeated_tuples:
        doubled = planner.reliability(
            planner.tuples_per_item,
            2 * planner.annotations_per_tuple,
            planner.judgments_per_annotator,
        )
        yield note("twice as many annotations per tuple would give {r:.2f}", r=doubled)


def _stopping_finding(judgments: Judgments) -> Finding:
    from bws.adaptive import stopping

    result = stopping(judgments)
    low, middle, high = result.quantiles
    expected = note(
        "expected correlation with the true scores: {r:.2f} [{low:.2f}, {high:.2f}]",
        r=middle, low=low, high=high,
    )  # fmt: skip
    numbers = {"stop": result.stop, "quantiles": [*result.quantiles]}
    return Finding("scores", [result.verdict, expected], numbers, opens={"page": "annotation"})


def item_finding(judgments: Judgments) -> Finding:
    """Return how many pairs of items differ significantly, and the sets of items whose ranks overlap."""
    from bws.scoring import score

    method = "best-worst-logit" if judgments.is_adaptive else "counting"
    try:
        scores = score(judgments, method, scale="unit", interval="model", ranks=True)
    except ValueError as error:
        return Finding("items", [note("items are not compared: {reason}", reason=str(error))])
    assert scores.rank_low is not None
    assert scores.rank_high is not None
    _, group_of, sizes = np.unique(scores.groups, return_inverse=True, return_counts=True)
    n_pairs = int((sizes * (sizes - 1) // 2).sum())
    if np.isnan(scores.rank_low).all():
        return Finding("items", [note("no differences of items could be tested")])
    sets = sets_of_equals(scores)
    # the items that are surely below an item are those of the ranks after its last one
    n_below = np.nansum(sizes[group_of] - scores.rank_high)
    counts = {
        "different_pairs": int(n_below),
        "pairs": n_pairs,
        "overlapping_items": sum(len(items) for _, items in sets),
        "items": len(scores),
    }
    sentences = [
        note(
            "{n:d} of {total:d} pairs of items of a group differ significantly (Holm, 5 %)",
            n=counts["different_pairs"], total=n_pairs,
        ),
        note(
            "{n:d} of {total:d} items have a rank that overlaps with another one",
            n=counts["overlapping_items"], total=len(scores),
        ),
    ]  # fmt: skip
    if sets:
        group, items = sets[0]
        named = f"{group}: {_listed(items)}" if group else _listed(items)
        sentences.append(note("largest set of items with overlapping ranks: {names}", names=named))
    return Finding(
        "items",
        sentences,
        {**counts, "sets": [{"group": group, "items": items} for group, items in sets]},
        lambda t: charts.pairs_strip(counts["different_pairs"], n_pairs, t),
        {"page": "dialogues", "dialogue": sets[0][0]}
        if sets and sets[0][0]
        else {"page": "overview"},
    )


def sets_of_equals(scores: Scores) -> list[tuple[str, list[str]]]:
    """Return the sets of items of a group whose ranks overlap, in the order of scores, largest first.

    Items with a rank of their own are in no set; those without ranks are in none either.
    """
    assert scores.rank_low is not None
    assert scores.rank_high is not None
    order = np.lexsort((scores.rank_high, scores.rank_low, scores.groups))
    sets: list[tuple[str, list[str]]] = []
    end = math.nan
    for index in order.tolist():
        low, high = scores.rank_low[index], scores.rank_high[index]
        group, item = str(scores.groups[index]), str(scores.items[index])
        if math.isnan(low):
            continue
        if sets and sets[-1][0] == group and low <= end:
            sets[-1][1].append(item)
            end = max(end, high)
        else:
            sets.append((group, [item]))
            end = high
    several = [(group, items) for group, items in sets if len(items) > 1]
    return sorted(several, key=lambda each: -len(each[1]))


def annotator_finding(judgments: Judgments) -> Finding:
    """Return the annotators with flags, by flag."""
    from bws.annotators import Flag, annotator_report

    opens = {"page": "annotation"}
    if not len(judgments.annotators):
        return Finding("annotators", [note("the judgments do not name annotators")], opens=opens)
    report = annotator_report(judgments)
    by_flag = {
        flag: [each.annotator for each in report.flagged if flag in each.flags]
        for flag in get_args(Flag)
    }
    total, n_flagged = len(report.annotators), len(report.flagged)
    sentences = [note("{n:d} of {total:d} annotators need review", n=n_flagged, total=total)]
    sentences += [_flag_note(flag, names) for flag, names in by_flag.items() if names]
    if report.too_few:
        sentences.append(
            note(
                "{n:d} of {total:d} annotators have too few judgments to detect random answers",
                n=report.too_few,
                total=total,
            )
        )
    numbers = {
        "annotators": total,
        "flagged": n_flagged,
        "too_few": report.too_few,
        "flags": by_flag,
    }
    return Finding(
        "annotators",
        sentences,
        numbers,
        _scale_strip(report),
        opens | ({"annotator": report.flagged[0].annotator} if n_flagged == 1 else {}),
    )


def _flag_note(flag: Flag, annotators: Sequence[str]) -> str:
    names = _listed(annotators)
    return {
        "reversed": note("best and worst exchanged: {names}", names=names),
        "random": note("answers close to random: {names}", names=names),
        "inexact": note("answers far less exact than usual: {names}", names=names),
        "fast": note("far faster than usual: {names}", names=names),
        "positions": note("answers depend on the screen position: {names}", names=names),
        "same_answer": note("the same two screen positions in all judgments: {names}", names=names),
    }[flag]


def _scale_strip(report: AnnotatorReport) -> Callable[[Translate], Drawing] | None:
    if all(math.isnan(each.scale) for each in report.annotators):
        return None
    return lambda t: charts.scale_strip(report.annotators, t)


def model_finding(results: Sequence[Result]) -> Finding:
    """Return the best model per task, data set and history condition, and those not significantly worse."""
    from giccs.report.model_comparison import compare

    opens = {"page": "models"}
    if not results:
        return Finding("models", [NO_RESULTS], opens=opens)
    boards = [board for board in compare(results).leaderboards if board.metric in METRICS]
    if not boards:
        return Finding("models", [note("no two results can be compared")], opens=opens)
    sentences = [sentence for board in boards for sentence in _leader_sentences(board)]
    best = [board.models[0] for board in boards]
    numbers = [
        {
            "task": board.task,
            "data": board.data,
            "history": board.history,
            "metric": board.metric,
            "leader": _document(leader),
            "tied": [_document(board.models[index]) for index in sorted(board.tied)],
            "models": len(board.models),
        }
        for board, leader in zip(boards, best, strict=True)
    ]
    return Finding(
        "models",
        sentences,
        {"leaderboards": numbers},
        lambda t: charts.model_strip(boards[0], MAX_MODELS, t),
        opens | {"task": boards[0].task},
    )


def _leader_sentences(board: Leaderboard) -> Iterator[str]:
    """Yield the best model with its interval, and how many are not significantly worse."""
    leader, n_models = board.models[0], len(board.models)
    values: dict[str, object] = {
        "model": leader.model,
        "metric": metric_title(board.metric),
        "value": leader.estimate.value,
        "low": leader.estimate.low,
        "high": leader.estimate.high,
        "n": n_models,
        "history": board.history,
    }
    if board.history:
        yield note(
            "best of {n:d} models {history} history by {metric}: {model}, {value:.3f} "
            "[{low:.3f}, {high:.3f}]",
            **values,
        )
    else:
        yield note(
            "best of {n:d} models by {metric}: {model}, {value:.3f} [{low:.3f}, {high:.3f}]",
            **values,
        )
    tied = [board.models[index].model for index in sorted(board.tied)]
    if tied:
        yield note("not significantly worse: {names}", names=_listed(tied))
    elif n_models > 1:
        yield note("all others are significantly worse (Holm, 5 %)")


def _document(model: RankedModel) -> dict[str, Any]:
    return {"model": model.model, **model.estimate.document()}


def _listed(names: Sequence[str]) -> str:
    """Return the names, of many the first ones and how many more there are.

    >>> _listed(["a", "b"])
    'a, b'
    """
    listed = ", ".join(names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{listed} (+{more})" if more > 0 else listed
