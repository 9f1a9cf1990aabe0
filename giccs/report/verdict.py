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
from numpy.typing import NDArray

from bws.analysis.analysis import Answers, Drawing, Translate
from bws.analysis.judgments import COMPONENTS, PLAN, RELIABILITY, ReliabilitySettings
from bws.base.notes import note, sentence
from bws.base.tables import limits_text
from bws.model_annotators import is_model
from giccs.report import verdict_charts as charts
from giccs.report.metric_titles import metric_title

if TYPE_CHECKING:
    from bws.annotators import Annotator, Flag
    from bws.records import Judgments, Scores
    from bws.stats.estimates import Estimate
    from giccs.measures.results import Result
    from giccs.report.model_comparison import (
        Leaderboard,
        ModelComparison,
        RankedModel,
        SkippedResult,
    )

METRICS = ("spearman", "accuracy")
"""Metrics by which models are ranked."""
MAX_NAMES = 10
"""Maximum number of names in a sentence; the document has all."""
MAX_SKIPPED = 3
"""Maximum number of results that are not compared of which a sentence says why; the document has all."""
MAX_MODELS = 10
"""Maximum number of models in a chart."""
NO_JUDGMENTS = note("unknown without the judgments behind the scores: --judgments FILE")
NO_RESULTS = note("unknown without results of models: giccs eval MODEL -o FOLDER")
SIMULATED = note("the annotators are simulated: the numbers are no results")
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
        return " ".join(map(sentence, self.sentences))

    def document(self) -> dict[str, Any]:
        """Return the finding as a JSON-serialisable dict."""
        return {"question": QUESTIONS[self.name], "sentences": [*self.sentences], **self.numbers}


def findings(
    judgments: Judgments | None,
    results: Sequence[Result],
    reliability: Answers | None = None,
    comparison: ModelComparison | None = None,
) -> list[Finding]:
    """Return the answers to the four `QUESTIONS`; where data are missing, what would be needed.

    judgments: those behind the scores. results: on the same data, with their predictions. reliability: of
    these judgments with the default `ReliabilitySettings`; comparison: of these results; by default, both are
    computed.

    >>> for finding in findings(None, []):
    ...     print(finding.text)
    Unknown without the judgments behind the scores: --judgments FILE.
    Unknown without the judgments behind the scores: --judgments FILE.
    Unknown without the judgments behind the scores: --judgments FILE.
    Unknown without results of models: giccs eval MODEL -o FOLDER.
    """
    if judgments is None:
        unknown = ("scores", "items", "annotators")
        return [
            *(Finding(name, [NO_JUDGMENTS]) for name in unknown),
            model_finding(results, comparison),
        ]
    scores = score_finding(judgments, reliability)
    if judgments.is_simulated:
        scores = replace(scores, sentences=[SIMULATED, *scores.sentences])
    return [
        scores,
        item_finding(judgments),
        annotator_finding(judgments),
        model_finding(results, comparison),
    ]


def score_finding(judgments: Judgments, reliability: Answers | None = None) -> Finding:
    """Return the reliability of the scores, and what more annotations would give; see `findings`."""
    if judgments.is_adaptive:
        return _stopping_finding(judgments)
    answers = reliability or Answers(judgments, ReliabilitySettings())
    opens = {"page": "annotation"}
    try:
        halves, study = answers.result(RELIABILITY), answers.result(COMPONENTS)
    except ValueError as error:
        return Finding("scores", [note("no reliability: {reason}", reason=str(error))], opens=opens)
    groups = {halves.signature["split"]: halves.groups[0]}
    groups |= {split: parts[0] for split, parts in halves.splits.items()}
    splits = {split: group.pearson.spearman_brown for split, group in groups.items()}
    correlations = {split: group.pearson.mean for split, group in groups.items()}
    estimate, plan = study.reliability, answers.result(PLAN)
    target = ReliabilitySettings().target
    defined = [r for r in splits.values() if not math.isnan(r)]
    has_negative = any(r < 0 for r in correlations.values())
    worst = min(defined, default=math.nan) if math.isnan(estimate.value) else estimate.value
    sentences = []
    if not math.isnan(worst) or has_negative:
        sentences.append(
            note("the scores reach the target reliability of {target:g}", target=target)
            if worst >= target and not has_negative
            else note("the scores do not reach the target reliability of {target:g}", target=target)
        )
    sentences += _split_sentences(correlations)
    if math.isnan(estimate.value):
        sentences += study.notes[:1]
    else:
        limits = {"r": estimate.value, "low": estimate.low, "high": estimate.high}
        sentences.append(
            note(
                "reliability that includes all sources of error (variance components): {r:.2f}",
                **limits,
            )
            if math.isnan(estimate.low)
            else note(
                "reliability that includes all sources of error (variance components): {r:.2f} "
                "[{low:.2f}, {high:.2f}]",
                **limits,
            )
        )
    if plan:
        sentences += _plan_sentences(plan.planner, plan.target)
    return Finding(
        "scores",
        sentences,
        {"splits": splits, "correlations": correlations, "reliability": estimate.document()},
        _reliability_strip(splits, estimate),
        opens,
    )


def _reliability_strip(
    splits: Mapping[str, float], reliability: Estimate
) -> Callable[[Translate], Drawing] | None:
    if all(map(math.isnan, (*splits.values(), reliability.value))):
        return None
    target = ReliabilitySettings().target
    return lambda t: charts.reliability_strip(splits, reliability, target, t)


def _split_sentences(correlations: Mapping[str, float]) -> Iterator[str]:
    """Yield the reliability by each split; correlations: of the halves."""
    defined = [_split_text(split, r) for split, r in correlations.items() if not math.isnan(r)]
    if not defined:
        yield note("no split of the judgments gives a reliability")
        return
    values = "; ".join(defined)
    yield note("split-half reliability (Spearman–Brown): {reason}", reason=values)


def _split_text(split: str, r: float) -> str:
    """Return the reliability by a split whose halves have the correlation r; it is undefined if negative."""
    from bws.split_half import spearman_brown

    if r < 0:
        return {
            "annotation": note(
                "halves of each tuple's judgments: a negative correlation, {r:.2f}", r=r
            ),
            "tuple": note("halves of the tuples: a negative correlation, {r:.2f}", r=r),
            "annotator": note("halves of the annotators: a negative correlation, {r:.2f}", r=r),
        }[split]
    reliability = spearman_brown(r)
    return {
        "annotation": note("halves of each tuple's judgments: {r:.2f}", r=reliability),
        "tuple": note("halves of the tuples: {r:.2f}", r=reliability),
        "annotator": note("halves of the annotators: {r:.2f}", r=reliability),
    }[split]


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
    assert scores.rank_high is not None
    is_tested, n_pairs = _tested_items(judgments, scores)
    n_untested = int(np.count_nonzero(~is_tested))
    reasons = [each for each in scores.notes if not each.startswith("ranks within")]
    if not n_pairs:
        return Finding("items", [note("no differences of items could be tested"), *reasons])
    sets = overlapping_sets(scores, is_tested)
    _, group_of, sizes = np.unique(scores.groups, return_inverse=True, return_counts=True)
    # the items that are surely below an item are those of the ranks after its last one
    n_below = (sizes[group_of] - scores.rank_high)[is_tested].sum()
    counts = {
        "different_pairs": int(n_below),
        "pairs": n_pairs,
        "overlapping_items": sum(len(items) for _, items in sets),
        "items": len(scores),
        "untested_items": n_untested,
    }
    values = {"n": counts["different_pairs"], "total": n_pairs}
    overlapping = {"n": counts["overlapping_items"], "total": len(scores) - n_untested}
    sentences = [
        note(
            "{n:d} of {total:d} pairs of items of a group differ significantly (Holm, 5 %)",
            **values,
        )
        if any(scores.groups)
        else note("{n:d} of {total:d} pairs of items differ significantly (Holm, 5 %)", **values),
        note(
            "the ranks of {n:d} of {total:d} items overlap with those of another one", **overlapping
        ),
    ]
    if sets:
        group, items = sets[0]
        named = f"{group}: {_listed(items)}" if group else _listed(items)
        sentences.append(
            note(
                "largest set of items whose ranks overlap, each with the next: {names}", names=named
            )
        )
    if n_untested:
        sentences += [note("{n:d} items were not tested", n=n_untested), *reasons]
    return Finding(
        "items",
        sentences,
        {**counts, "sets": [{"group": group, "items": items} for group, items in sets]},
        lambda t: charts.pairs_strip(counts["different_pairs"], n_pairs, t),
        {"page": "dialogues", "dialogue": sets[0][0]}
        if sets and sets[0][0]
        else {"page": "overview"},
    )


def _tested_items(judgments: Judgments, scores: Scores) -> tuple[NDArray[np.bool_], int]:
    """Return (N,) which items were compared with another one, and the number of compared pairs.

    Those are the items with ranks of each connected set that is not too large (`bws.scoring.pair_tests`).
    """
    from bws.scoring.choice import MAX_STDERR_ITEMS, connected_labels

    assert scores.rank_low is not None
    canonical = judgments.canonical
    origin = canonical.origin[: canonical.n_scored]
    label = np.full(len(scores), -1)
    label[origin] = connected_labels(canonical)[: len(origin)]
    is_known = (label >= 0) & ~np.isnan(scores.rank_low)
    sizes = np.bincount(label[is_known], minlength=label.max(initial=0) + 1)
    is_compared = (sizes > 1) & (sizes <= MAX_STDERR_ITEMS)
    n_pairs = int((sizes * (sizes - 1) // 2)[is_compared].sum())
    return is_known & is_compared[label], n_pairs


def overlapping_sets(scores: Scores, is_tested: NDArray[np.bool_]) -> list[tuple[str, list[str]]]:
    """Return the sets of tested items of a group in which the ranks of each overlap with those of the next.

    In the order of ranks, the largest set first; items that overlap with no other one are in no set.
    """
    assert scores.rank_low is not None
    assert scores.rank_high is not None
    order = np.lexsort((scores.rank_high, scores.rank_low, scores.groups))
    sets: list[tuple[str, list[str]]] = []
    end = math.nan
    for index in order.tolist():
        low, high = scores.rank_low[index], scores.rank_high[index]
        group, item = str(scores.groups[index]), str(scores.items[index])
        if not is_tested[index]:
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
    try:
        report = annotator_report(judgments)
    except ValueError as error:
        reason = note("annotators cannot be assessed: {reason}", reason=str(error))
        return Finding("annotators", [reason], opens=opens)
    people = [each for each in report.annotators if not is_model(each.annotator)]
    flagged = [each for each in people if each.flags]
    by_flag = {
        flag: [each.annotator for each in flagged if flag in each.flags] for flag in get_args(Flag)
    }
    total, n_unknown = len(people), sum(math.isnan(each.scale) for each in people)
    sentences = [note("{n:d} of {total:d} annotators need review", n=len(flagged), total=total)]
    sentences += [_flag_note(flag, names) for flag, names in by_flag.items() if names]
    if n_unknown:
        sentences.append(
            note(
                "{n:d} of {total:d} annotators cannot be assessed: too few judgments, or answers that are "
                "unrelated to those of the others or contradict them",
                n=n_unknown,
                total=total,
            )
        )
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
        "flagged": len(flagged),
        "without_scale": n_unknown,
        "too_few": report.too_few,
        "flags": by_flag,
    }
    return Finding(
        "annotators",
        sentences,
        numbers,
        _scale_strip(people),
        opens | ({"annotator": flagged[0].annotator} if len(flagged) == 1 else {}),
    )


def _flag_note(flag: Flag, annotators: Sequence[str]) -> str:
    names = _listed(annotators)
    return {
        "reversed": note("best and worst exchanged: {names}", names=names),
        "random": note("answers close to random: {names}", names=names),
        "inexact": note("answers far less exact than usual: {names}", names=names),
        "worse": note("less exact in the second half: {names}", names=names),
        "fast": note("far faster than usual: {names}", names=names),
        "positions": note("answers depend on the screen position: {names}", names=names),
        "same_answer": note("the same two screen positions in all judgments: {names}", names=names),
    }[flag]


def _scale_strip(annotators: Sequence[Annotator]) -> Callable[[Translate], Drawing] | None:
    if all(math.isnan(each.scale) for each in annotators):
        return None
    return lambda t: charts.scale_strip(annotators, t)


def model_finding(results: Sequence[Result], comparison: ModelComparison | None = None) -> Finding:
    """Return the best model per task, data set and history condition, and those not significantly worse."""
    from giccs.report.model_comparison import compare

    opens = {"page": "models"}
    if not results:
        return Finding("models", [NO_RESULTS], opens=opens)
    comparison = comparison or compare(results)
    first: dict[tuple[str, ...], SkippedResult] = {}
    for each in comparison.skipped:  # a result may be skipped for several metrics
        first.setdefault((each.model, each.history, each.task, each.data), each)
    skipped = [*map(str, first.values())]
    boards = [board for board in comparison.leaderboards if board.metric in METRICS]
    if not boards:
        reasons = skipped[:MAX_SKIPPED]
        return Finding("models", [note("no two results can be compared"), *reasons], opens=opens)
    sentences = [sentence for board in boards for sentence in _leader_sentences(board)]
    sentences += skipped[:MAX_SKIPPED]
    if len(skipped) > MAX_SKIPPED:
        sentences.append(
            note("{n:d} further results are not compared", n=len(skipped) - MAX_SKIPPED)
        )
    numbers = [
        {
            "task": board.task,
            "data": board.data,
            "history": board.history,
            "metric": board.metric,
            "leader": _document(board.models[0]),
            "tied": [_document(board.models[index]) for index in sorted(board.tied)],
            "untested": [_document(board.models[index]) for index in _untested(board)],
            "models": len(board.models),
        }
        for board in boards
    ]
    return Finding(
        "models",
        sentences,
        {"leaderboards": numbers, "skipped": skipped},
        lambda t: charts.model_strip(boards[0], MAX_MODELS, t),
        opens | {"task": boards[0].task},
    )


def _untested(board: Leaderboard) -> list[int]:
    """Return the indices of the models whose difference from the best one cannot be tested."""
    return [
        pair.second
        for pair in board.pairs
        if pair.first == 0 and math.isnan(pair.p) and pair.second not in board.tied
    ]


def _leader_sentences(board: Leaderboard) -> Iterator[str]:
    """Yield the best model with its interval, and which are not significantly worse or not tested."""
    leader, n_models, estimate = board.models[0], len(board.models), board.models[0].estimate
    values: dict[str, object] = {
        "task": board.task,
        "data": board.data,
        "model": leader.model,
        "metric": metric_title(board.metric),
        "value": estimate.value,
        "values": limits_text(estimate, ".3f"),
        "n": n_models,
        "history": board.history,
    }
    yield (
        note(
            "best of {n:d} results of {task} on {data}, {history} history, by {metric}: {model} with "
            "{value:.3f} {values}",
            **values,
        )
        if board.history
        else note(
            "best of {n:d} results of {task} on {data}, by {metric}: {model} with {value:.3f} {values}",
            **values,
        )
    )
    tied = [board.models[index].model for index in sorted(board.tied)]
    untested = [board.models[index].model for index in _untested(board)]
    if tied:
        yield note("not significantly worse: {names}", names=_listed(tied))
    if untested:
        yield note("not tested: {names}", names=_listed(untested))
    if n_models > 1 and not tied and not untested:
        yield note("all others are significantly worse (Holm, 5 %)")


def _document(model: RankedModel) -> dict[str, Any]:
    return {"model": model.model, **model.estimate.document()}


def _listed(names: Sequence[str]) -> str:
    """Return the names, those with commas in quotes; of many the first ones and how many more there are.

    >>> _listed(["a", "b"])
    'a, b'
    """
    listed = ", ".join(f'"{name}"' if "," in name else name for name in names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    return f"{listed} (+{more})" if more > 0 else listed
