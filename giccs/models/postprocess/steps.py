"""Steps at the end of a model's name: ``NAME+STEP[:K]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bws.problems import InputError, Problem

__all__ = [
    "COMPONENTS",
    "STEPS",
    "Step",
    "canonical_name",
    "family_of",
    "is_postprocessed",
    "parse_step",
    "split_steps",
]

STEPS = {
    "whitening": "whitening[:K]: no correlations, variances 1; K dimensions are kept (Su et al. 2021)",
    "abtt": "abtt[:K]: without the mean and K (2) principal components (Mu et al. 2018)",
    "pcr": "pcr[:K]: without K (2) principal components of the raw vectors (Arora et al. 2017)",
    "flow": "flow: an invertible map to a standard Gaussian (Li et al. 2020)",
    "first-last": "first-last: the mean of an encoder's first and last layer",
    "words": "words: word vectors for text whose signs cling to words",
}
"""Name of a step -> how it is written and what it does."""
POSTPROCESSING = ("whitening", "abtt", "pcr", "flow")
"""Steps that change vectors after the model gave them; the others choose which it gives."""
COUNTED = ("whitening", "abtt", "pcr")
"""Steps that take a number."""
COMPONENTS = 2
"""Default K of abtt and pcr: what EvalRank's program removes, from word and from sentence vectors."""
DEFAULTS = {"abtt": COMPONENTS, "pcr": COMPONENTS}


@dataclass(frozen=True, slots=True)
class Step:
    """One step."""

    name: str
    k: int | None = None
    """None: the step has no number, or keeps all dimensions (whitening)."""

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}:{self.k}"


def parse_step(text: str) -> Step:
    """Return the step that `text` spells, with its default number; InputError with what is allowed.

    >>> parse_step("whitening:256")
    Step(name='whitening', k=256)
    >>> str(parse_step("abtt"))
    'abtt:2'
    """
    name, colon, number = text.partition(":")
    if name not in STEPS:
        allowed = "; ".join(STEPS.values())
        raise InputError(Problem(f"+{text}", None, f"no such step; allowed: {allowed}"))
    if not colon:
        return Step(name, DEFAULTS.get(name))
    if name not in COUNTED:
        raise InputError(Problem(f"+{text}", None, f"takes no number; write +{name}"))
    if not re.fullmatch(r"0*[1-9][0-9]{0,6}", number):
        message = f"K is {number!r}; a whole number from 1 to 9999999 is allowed"
        raise InputError(Problem(f"+{text}", None, message))
    return Step(name, int(number))


def split_steps(name: str) -> tuple[str, list[str]]:
    """Return the name of the model itself and its steps, in their order.

    Only what follows a ``+`` and is a step's name counts, so that paths may have a ``+`` in them.
    Raises InputError where a step's number is wrong, and where the rest has a ``+`` but is no path.

    >>> split_steps("package:minilm+pcr+whitening:256")
    ('package:minilm', ['pcr:2', 'whitening:256'])
    """
    base, spelled = _divided(name)
    steps = [str(parse_step(one)) for one in spelled]
    _, plus, last = base.rpartition("+")
    if plus and not _is_path(base):
        allowed = "; ".join(STEPS.values())
        message = f"no such file, nor is {last!r} a step; steps: {allowed}"
        raise InputError(Problem(base, None, message))
    return base, steps


def canonical_name(name: str) -> str:
    """Return the name that results of the model have: every step with its number.

    >>> canonical_name("static:glove.txt+words+abtt")
    'static:glove.txt+words+abtt:2'
    """
    base, steps = _divided(name)
    return "+".join([base, *(str(parse_step(step)) for step in steps)])


def family_of(name: str) -> str:
    """Return what a model and all that steps make of it have in common: its name without them.

    >>> family_of("static:glove.6B.50d.txt+abtt:2")
    'static:glove.6B.50d.txt'
    """
    return _divided(name)[0]


def is_postprocessed(name: str) -> bool:
    """Tell whether the steps of a name change vectors after the model gave them.

    >>> is_postprocessed("static:glove.txt+words+abtt:2"), is_postprocessed("static:glove.txt+words")
    (True, False)
    """
    return any(step.partition(":")[0] in POSTPROCESSING for step in _divided(name)[1])


def _divided(name: str) -> tuple[str, list[str]]:
    """Return a name before its steps, and these as they are spelled; a path with a ``+`` in it keeps it."""
    rest, plus, last = name.rpartition("+")
    if not plus or last.partition(":")[0] not in STEPS:
        return name, []
    base, steps = _divided(rest)
    return base, [*steps, last]


def _is_path(base: str) -> bool:
    return any(Path(text).expanduser().exists() for text in (base, base.partition(":")[2]) if text)
