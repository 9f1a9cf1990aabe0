"""Models whose vectors are changed after they were computed: ``NAME+STEP[:K]``, several in a row.

package:minilm+whitening:256     static:glove.6B.300d.txt+abtt:2     bert-base-uncased+first-last+flow
"""

from __future__ import annotations

from giccs.models.postprocess.model import Encoder, Processed, wrapped
from giccs.models.postprocess.spelling import (
    STEPS,
    Step,
    canonical_name,
    family_of,
    is_postprocessed,
    parse_step,
    split_steps,
)

__all__ = [
    "STEPS",
    "Encoder",
    "Processed",
    "Step",
    "canonical_name",
    "family_of",
    "is_postprocessed",
    "parse_step",
    "split_steps",
    "wrapped",
]
