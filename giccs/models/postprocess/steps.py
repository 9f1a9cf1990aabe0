"""Postprocessing steps in the name of a model: ``NAME+STEP[:K]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bws.base.problems import InputError, Problem

STEPS = {
    "whitening": "whitening[:K]: uncorrelated dimensions with variance 1; K dimensions are kept (Su et "
    "al. 2021)",
    "abtt": "abtt[:K]: removes the mean and K (2) principal components (Mu et al. 2018)",
    "pcr": "pcr[:K]: removes K (2) principal components of the raw vectors (Arora et al. 2017)",
    "flow": "flow: an invertible map to a standard Gaussian (Li et al. 2020)",
    "first-last": "first-last: mean of an encoder's first and last layer",
    "words": "words: word vectors for text with punctuation attached to words",
}
"""Name of a step -> its syntax and effect."""
POSTPROCESSING = ("whitening", "abtt", "pcr", "flow")
"""Steps that transform the vectors of a model; the others select its vectors."""
STEPS_WITH_K = ("whitening", "abtt", "pcr")
"""Steps with a number."""
COMPONENTS = 2
"""Default K of abtt and pcr: the values in EvalRank's program for word and sentence vectors."""
DEFAULTS = {"abtt": COMPONENTS, "pcr": COMPONENTS}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of post-processing, with its number."""

    name: str
    k: int | None = None
    """None if the step has no number, or keeps all dimensions (whitening)."""

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}:{self.k}"


def parse_step(text: str) -> Step:
    """Return the step denoted by `text`, with its default number; raise InputError for invalid text.

    >>> parse_step("whitening:256")
    Step(name='whitening', k=256)
    >>> str(parse_step("abtt"))
    'abtt:2'
    """
    name, colon, number = text.partition(":")
    if name not in STEPS:
        allowed = "; ".join(STEPS.values())
        raise InputError(Problem(f"+{text}", None, f"no such step; expected one of {allowed}"))
    if not colon:
        return Step(name, DEFAULTS.get(name))
    if name not in STEPS_WITH_K:
        raise InputError(Problem(f"+{text}", None, f"takes no number; expected +{name}"))
    if not re.fullmatch(r"0*[1-9][0-9]{0,6}", number):
        message = f"K is {number!r}; expected an integer from 1 to 9999999"
        raise InputError(Problem(f"+{text}", None, message))
    return Step(name, int(number))


def split_steps(name: str) -> tuple[str, list[str]]:
    """Return the name of the base model and its steps, in order.

    A ``+`` separates steps only if a step name follows, so that paths may contain ``+``. Raises InputError
    for an invalid number of a step, and for a remaining ``+`` that is not part of an existing path.

    >>> split_steps("package:minilm+pcr+whitening:256")
    ('package:minilm', ['pcr:2', 'whitening:256'])
    """
    base, spelled = _divided(name)
    steps = [str(parse_step(step)) for step in spelled]
    _, plus, last = base.rpartition("+")
    if plus and not _is_path(base):
        allowed = "; ".join(STEPS.values())
        message = f"no such file, and {last!r} is not a step; expected one of {allowed}"
        raise InputError(Problem(base, None, message))
    return base, steps


def canonical_name(name: str) -> str:
    """Return the name of the model in results: every step with its number.

    >>> canonical_name("static:glove.txt+words+abtt")
    'static:glove.txt+words+abtt:2'
    """
    base, steps = _divided(name)
    return "+".join([base, *(str(parse_step(step)) for step in steps)])


def family_of(name: str) -> str:
    """Return the name of a model without steps, which all its variants share.

    >>> family_of("static:glove.6B.50d.txt+abtt:2")
    'static:glove.6B.50d.txt'
    """
    return _divided(name)[0]


def is_postprocessed(name: str) -> bool:
    """Return whether the steps of a name transform vectors.

    >>> is_postprocessed("static:glove.txt+words+abtt:2"), is_postprocessed("static:glove.txt+words")
    (True, False)
    """
    return any(step.partition(":")[0] in POSTPROCESSING for step in _divided(name)[1])


def _divided(name: str) -> tuple[str, list[str]]:
    """Return a name without its steps, and the steps as written; a path may contain ``+``."""
    prefix, plus, last = name.rpartition("+")
    if not plus or last.partition(":")[0] not in STEPS:
        return name, []
    base, steps = _divided(prefix)
    return base, [*steps, last]


def _is_path(base: str) -> bool:
    return any(Path(text).expanduser().exists() for text in (base, base.partition(":")[2]) if text)
