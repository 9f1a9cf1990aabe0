"""Error identification by answers (L-CSTS, section 4.2): which labels do not fit what was answered?

records     an instance with its two answers; what is said of a suspicious one
answers     a CSV file of answers, and the reannotated labels beside it
vectors     answers and their concatenation -> vectors, by any encoder
clustering  answer pairs -> topics, by k-means
ranking     similarities in a topic -> rank labels
measures    labels, rank labels and the truth -> precision, recall, F1, MCC, Spearman
evaluation  halves, the curve over K, the choice of K
suspects    which labels differ from the rank label, and why
chart       the curve over K as a chart
"""

from __future__ import annotations

from giccs.csts.errors.evaluation import Evaluation, evaluate
from giccs.csts.errors.records import AnswerPair, Suspect, Vectors
from giccs.csts.errors.suspects import Findings, find_suspects

__all__ = [
    "AnswerPair",
    "Evaluation",
    "Findings",
    "Suspect",
    "Vectors",
    "evaluate",
    "find_suspects",
]
