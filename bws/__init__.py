"""Best–worst scaling: tuples, scores, reliability and agreement, independent of dialogues.

All names are imported on first use, so that `import bws` is fast.

>>> import bws
>>> judged = bws.judgments_from_records([
...     bws.Judgment(("a", "b", "c"), best="a", worst="c", annotator="w1"),
...     bws.Judgment(("a", "b", "c"), best="b", worst="c", annotator="w2"),
... ])
>>> bws.score(judged).score.tolist()
[0.5, 0.5, -1.0]
"""

from __future__ import annotations

TYPE_CHECKING = False  # Not of typing: importing it takes 8 ms, in which Ctrl-C prints a traceback.
if TYPE_CHECKING:
    from typing import Any

    from bws.absolute.design import plan_anchors
    from bws.absolute.files import read_anchors
    from bws.absolute.scores import absolute_scale
    from bws.adaptive import join_rounds, next_round, stopping
    from bws.annotators import annotator_report
    from bws.base.problems import InputError, Problem
    from bws.chance_agreement import agreement
    from bws.design import audit, extend_tuples, fresh_rounds, make_tuples
    from bws.files import (
        judgments_from_records,
        read_items,
        read_judgments,
        read_scores,
        read_tuples,
        without_annotators,
        write_judgments,
        write_scores,
        write_tuples,
    )
    from bws.metadata import Metadata, read_metadata
    from bws.model_verdict import verdict
    from bws.power_analysis import anchor_power, power
    from bws.records import Judgment, Judgments, Scores, Tuples
    from bws.scoring import METHODS, anchor, score, utilities
    from bws.scoring.prediction_powered import prediction_powered_scores
    from bws.simulation import simulate
    from bws.split_half import reliability, reliability_curve

__all__ = [
    "METHODS",
    "InputError",
    "Judgment",
    "Judgments",
    "Metadata",
    "Problem",
    "Scores",
    "Tuples",
    "absolute_scale",
    "agreement",
    "anchor",
    "anchor_power",
    "annotator_report",
    "audit",
    "extend_tuples",
    "fresh_rounds",
    "join_rounds",
    "judgments_from_records",
    "make_tuples",
    "next_round",
    "plan_anchors",
    "power",
    "prediction_powered_scores",
    "read_anchors",
    "read_items",
    "read_judgments",
    "read_metadata",
    "read_scores",
    "read_tuples",
    "reliability",
    "reliability_curve",
    "score",
    "simulate",
    "stopping",
    "utilities",
    "verdict",
    "without_annotators",
    "write_judgments",
    "write_scores",
    "write_tuples",
]

_EXPORTS = {
    "absolute.design": ("plan_anchors",),
    "absolute.files": ("read_anchors",),
    "absolute.scores": ("absolute_scale",),
    "adaptive": ("join_rounds", "next_round", "stopping"),
    "chance_agreement": ("agreement",),
    "annotators": ("annotator_report",),
    "design": ("audit", "extend_tuples", "fresh_rounds", "make_tuples"),
    "files": (
        "judgments_from_records",
        "read_items",
        "read_judgments",
        "read_scores",
        "read_tuples",
        "without_annotators",
        "write_judgments",
        "write_scores",
        "write_tuples",
    ),
    "metadata": ("Metadata", "read_metadata"),
    "model_verdict": ("verdict",),
    "power_analysis": ("anchor_power", "power"),
    "base.problems": ("InputError", "Problem"),
    "records": ("Judgment", "Judgments", "Scores", "Tuples"),
    "scoring": ("METHODS", "anchor", "score", "utilities"),
    "scoring.prediction_powered": ("prediction_powered_scores",),
    "simulation": ("simulate",),
    "split_half": ("reliability", "reliability_curve"),
}
_HOME_OF = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'bws' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"bws.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
