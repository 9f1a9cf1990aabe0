"""How similar are two sentences under a condition that is a typed feature structure?

L-CSTS section 6.1: the condition is an entity type; each sentence gives that type's features values, people
label how similar the two values of a feature are, and the score is the weighted sum of the labels of the
features that are not empty. Figure 6, under the condition *Animal*:

    feature    sentence 1   sentence 2   label  weight
    type       dog          dog          5      0.6
    color      N/A          N/A          N/A
    count      1            1            5      0.2
    position   sitting      in the air   1      0.2

    similarity = (5 × 0.6) + (5 × 0.2) + (1 × 0.2) = 3.0 + 1.0 + 0.2 = 4.2

How two values compare the paper leaves to the people who label them, and so does this module: the similarity
of a feature is data, also where the values are structures of their own.

`structures` has the records, `scoring` the score, `summarising` what many of them say, `reading` the files.
"""

from __future__ import annotations

from giccs.csts.tfs.reading import read_tfs
from giccs.csts.tfs.scoring import RULES, Contribution, Score, score
from giccs.csts.tfs.structures import Comparison, Feature, Value, shown
from giccs.csts.tfs.summarising import FeatureUse, Summary, summary

__all__ = [
    "RULES",
    "Comparison",
    "Contribution",
    "Feature",
    "FeatureUse",
    "Score",
    "Summary",
    "Value",
    "read_tfs",
    "score",
    "shown",
    "summary",
]
