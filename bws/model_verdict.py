"""Whether language models may replace annotators: test, agreement with people, and audit of each model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from bws.alternative_annotator import (
    FALSE_DISCOVERY_RATE,
    AlternativeAnnotatorTest,
    alternative_annotator_test,
    wins,
)
from bws.annotator_logit import PositionEffects
from bws.annotators import AnnotatorReport, annotator_report
from bws.base.frames import Source, Tabular, frames_like_source
from bws.base.notes import note, p_text
from bws.base.problems import InputError, Problem
from bws.base.tables import Cell, Column, ResultTable
from bws.chance_agreement import agreement
from bws.common_tuples import CommonTuples, common_tuples
from bws.files import as_judgments
from bws.model_agreement import AgreementWithPeople, agreement_with_people
from bws.model_annotators import DEFAULT_EPSILON, model_name
from bws.model_audit import ModelAudit, model_audit
from bws.model_savings import ModelSavings, pilot_savings
from bws.records import Judgment, Judgments


@dataclass(frozen=True, eq=False)
class ModelVerdict:
    """The verdict on one model, with the evidence."""

    model: str
    """The annotator of its judgments, ``model:NAME@REVISION``."""
    test: AlternativeAnnotatorTest
    agreement: AgreementWithPeople
    audit: ModelAudit
    positions: PositionEffects
    """Effects of being shown first rather than last, given the utilities of the items to people."""
    tuples: int
    """Tuples that people and the model judged."""
    n_people_only: int
    """Tuples that only people judged; they do not count."""
    n_model_only: int
    """Tuples that only the model judged; they count in the audit alone."""
    savings: ModelSavings
    """People's judgments that the model saves, estimated from all these judgments."""

    @property
    def name(self) -> str:
        """Name and revision of the model."""
        return model_name(self.model)

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        return f"{self.name}: {self.test.verdict}"

    def document(self) -> dict[str, Any]:
        """Return the verdict as a JSON-serialisable dict."""
        return {
            "model": self.model,
            "verdict": self.test.verdict,
            "tuples": {
                "common": self.tuples,
                "people_only": self.n_people_only,
                "model_only": self.n_model_only,
            },
            "test": self.test.document(),
            "agreement": self.agreement.document(),
            "audit": self.audit.document(),
            "first_rather_than_last": asdict(self.positions),
            "savings": self.savings.document(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Verdicts(Tabular):
    """Verdicts on several models, with the report on all annotators."""

    models: tuple[ModelVerdict, ...]
    """Sorted by annotator."""
    annotators: AnnotatorReport
    """People, and models beside them."""
    alpha: float
    """Krippendorff's alpha of people, best and worst answers pooled; NaN if undefined."""
    notes: tuple[str, ...] = ()
    signature: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the computation."""

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON-serialisable dict."""
        return {
            "models": [each.document() for each in self.models],
            "annotators": self.annotators.document(),
            "people": {"alpha": self.alpha},
            "notes": list(self.notes),
            "signature": dict(self.signature),
        }

    def result_table(self) -> ResultTable:
        """Return a row per model, below the verdicts as sentences."""
        columns = [
            Column("model", "model"),
            Column("may_replace", "may replace annotators"),
            Column("winning_rate", "winning rate", ".2f", align="right"),
            Column("annotators", "annotators", align="right"),
            Column("advantage", "mean advantage probability", ".3f", align="right"),
            Column("tuples", "tuples", align="right"),
        ]
        answers = {True: "yes", False: "no", None: "no verdict"}
        rows: list[list[Cell]] = [
            [
                *(each.name, answers[each.test.may_replace], each.test.winning_rate),
                *(len(each.test.comparisons), each.test.advantage, each.tuples),
            ]
            for each in self.models
        ]
        notes = [
            *self.notes,
            *_prefixed((each.name, _tuple_notes(each)) for each in self.models),
        ]
        sentences = [each.sentence for each in self.models]
        return ResultTable(columns, rows, notes, "Verdict", "–", introduction=sentences)

    def table(self) -> str:
        """Return the verdicts as sentences, and the table as text."""
        table = self.result_table()
        return "\n".join([*table.introduction, "", str(table)])

    def __repr__(self) -> str:
        """Return the verdicts as sentences, and the table as text."""
        return self.table()

    def result_tables(self) -> list[ResultTable]:
        """Return the tables of verdicts, tests, agreement, positions, consistency, savings, annotators."""
        parts: list[Callable[[ModelVerdict], ResultTable]] = [
            lambda each: each.test.result_table(),
            lambda each: each.agreement.result_table(),
            _position_table,
            lambda each: each.audit.consistency_table(),
            lambda each: each.savings.result_table(),
        ]
        joined = [_joined({each.name: part(each) for each in self.models}) for part in parts]
        if not np.isnan(self.alpha):
            alpha = note(
                "people: Krippendorff's alpha {alpha:.3f}, best and worst answers pooled",
                alpha=self.alpha,
            )
            joined[1] = replace(joined[1], notes=[alpha, *joined[1].notes])
        return [self.result_table(), *joined, self.annotators.result_table()]


def _position_table(each: ModelVerdict) -> ResultTable:
    """Return the shares of answers per position, and the log odds of first rather than last."""
    table = each.audit.position_table()
    effects = each.positions
    if np.isnan(effects.best.log_odds):
        return table
    row: list[Cell] = ["first rather than last, log odds", effects.best, effects.worst, 0.0]
    p = [
        f"{p_text(effect.p)} ({answer})"
        for answer, effect in (("best", effects.best), ("worst", effects.worst))
        if not np.isnan(effect.p)
    ]
    remark = note("log odds given the items' utilities to people: p {p}", p=", ".join(p))
    return replace(table, rows=[*table.rows, row], notes=[*table.notes, remark])


def _joined(tables: Mapping[str, ResultTable]) -> ResultTable:
    """Return the tables of models as one; the first column, the model, is not printed if there is one."""
    first = next(iter(tables.values()))
    rows = [[name, *row] for name, table in tables.items() for row in table.rows]
    notes = _prefixed((name, table.notes) for name, table in tables.items())
    columns = [Column("model", "model", is_detail=len(tables) == 1), *first.columns]
    return replace(first, columns=columns, rows=rows, notes=notes)


def _prefixed(notes: Iterator[tuple[str, Sequence[str]]]) -> list[str]:
    """Return notes on models, each once; with the name of the model unless they are on all models."""
    by_model = dict(notes)
    lines = dict.fromkeys(note for each in by_model.values() for note in each)
    shared = [note for note in lines if all(note in each for each in by_model.values())]
    own = [
        f"{name}: {note}" for name, each in by_model.items() for note in each if note not in shared
    ]
    return [*shared, *own]


def _tuple_notes(each: ModelVerdict) -> list[str]:
    """Return notes on tuples that only one side judged."""
    notes = []
    if each.n_people_only:
        notes.append(
            note("{n:d} tuples that only people judged do not count", n=each.n_people_only)
        )
    if each.n_model_only:
        notes.append(
            note(
                "{n:d} tuples that only the model judged count in its audit alone",
                n=each.n_model_only,
            )
        )
    return notes


@frames_like_source
def verdict(
    people: Judgments | Source,
    models: Judgments | Source | Sequence[Judgments | Source],
    *,
    epsilon: float = DEFAULT_EPSILON,
    control: Iterable[str] = (),
) -> Verdicts:
    """Return whether language models may replace annotators, with the evidence.

    people: judgments of people; `Judgments`, a path, a data frame, or records.
    models: judgments of one or more models (annotator ``model:NAME@REVISION``), or a sequence of sources.
    epsilon: margin of the test for the lower cost of models, in [0, 1); Calderon et al. (2025) recommend 0.1
        for crowd workers, 0.15 for skilled annotators and 0.2 for experts.

    The verdict on a model is that of the alternative annotator test
    (`bws.alternative_annotator.alternative_annotator_test`): it may replace annotators if it wins against
    half of them or more. Only tuples that people and the model judged count, matched by group and set of
    items. Of an adaptive study, only warm-up and audit tuples count, with a note. Tuples with control items
    do not count (`control`: as in `read_judgments`), nor do those items of the models.

    Raises ValueError for epsilon out of range or if all tuples are adaptive. Raises InputError for judgments
    of models in `people`, judgments of people in `models`, a model in two sources, and a model without a
    tuple that people judged.
    """
    people_judgments = as_judgments(people, control)
    _check_judgments(people_judgments, "people")
    people_judgments, notes = people_judgments.without_adaptive("verdict")
    parts = [as_judgments(part) for part in _sources(models)]
    by_model: dict[str, Judgments] = {}
    for part in parts:
        for name, judgments in _by_model(part):
            if name in by_model:
                message = f"{name} has judgments in several files; expected each model in one file"
                raise InputError(Problem(judgments.source or "models", None, message))
            judgments = judgments.with_controls_of(people_judgments)
            by_model[name] = judgments.without_adaptive("verdict")[0]
    report = annotator_report(people_judgments, list(by_model.values()))
    positions = {each.annotator: each.positions for each in report.annotators}
    verdicts = [
        _verdict(name, judgments, people_judgments, positions[name], epsilon)
        for name, judgments in sorted(by_model.items())
    ]
    signature = {
        "test": "Calderon, Reichart and Dror (2025)",
        "epsilon": epsilon,
        "false_discovery_rate": FALSE_DISCOVERY_RATE,
        "judgments": people_judgments.canonical.digest(),
        "models": {name: by_model[name].canonical.digest() for name in sorted(by_model)},
        "version": version("giccs"),
    }
    alpha = agreement(people_judgments).groups[0].alpha["both"].value
    return Verdicts(tuple(verdicts), report, alpha, tuple(notes), signature)


def _sources(
    models: Judgments | Source | Sequence[Judgments | Source],
) -> Sequence[Judgments | Source]:
    """Return the sources; a list of records is one source. Raises ValueError for an empty list."""
    if isinstance(models, (list, tuple)) and not models:
        raise ValueError("no judgments of models; expected at least one source")
    if isinstance(models, (list, tuple)) and not isinstance(models[0], (Mapping, Judgment)):
        return models
    return [models]


def _by_model(judgments: Judgments) -> Iterator[tuple[str, Judgments]]:
    """Yield each model with its judgments."""
    _check_judgments(judgments, "language models")
    for number in np.unique(judgments.annotator_of):
        rows = judgments.annotator_of == number
        yield str(judgments.annotators[number]), judgments.select(rows)


def _check_judgments(judgments: Judgments, kind: Literal["people", "language models"]) -> None:
    judgments.check_kind(kind)
    if not len(judgments):
        message = f"no judgments; expected those of {kind}"
        raise InputError(Problem(judgments.source or "judgments", None, message))


def _verdict(
    name: str, model: Judgments, people: Judgments, positions: PositionEffects, epsilon: float
) -> ModelVerdict:
    common = _common_tuples(name, model, people)
    return ModelVerdict(
        name,
        alternative_annotator_test(wins(common), epsilon=epsilon),
        agreement_with_people(common),
        model_audit(model, has_groups=common.has_groups),
        positions,
        len(common),
        common.n_people_only,
        common.n_model_only,
        pilot_savings(people, model),
    )


def _common_tuples(name: str, model: Judgments, people: Judgments) -> CommonTuples:
    common = common_tuples(people, model)
    if not len(common):
        sizes = people.tuples.k, model.tuples.k
        reason = f" (tuples of {sizes[0]} and {sizes[1]} items)" if sizes[0] != sizes[1] else ""
        expected = "expected the same groups and items in both"
        message = f"{name} judged no tuple that people judged{reason}; {expected}"
        raise InputError(Problem(model.source or "models", None, message))
    return common
