"""What score does a model's text say?

C-STS (A.3): the text "is stripped of non-numeric characters and errant punctuation before being cast to a
float"; "The Answer is 2.0." is 2.0, and what cannot be cast is invalid. That says nothing of texts with more
than one number: "4 out of 5" without what is not numeric is 45. The authors' program
(github.com/princeton-nlp/c-sts) takes the first number, digits with at most one point among them, and so does
this one. It follows that

- signs, percent signs, fractions and exponents are not read: "-2" is 2, "1e3" is 1, ".5" is 5, "3,5" is 3;
- numbers that are written as words are invalid, as are "nan" and "inf";
- digits of all scripts count ("٤" is 4), superscripts and "½" do not;
- a number outside 1 to 5 is valid and stays what it is, as in the paper's Table 5, where GPT-3.5 says 0.0;
- a model that gives no score but speaks of "Sentence 1" has said 1. `after_words` tells these apart from
  answers that begin with their number, and results say how many they are.
"""

from __future__ import annotations

import math
import re

__all__ = ["VERSION", "after_words", "first_number"]

VERSION = "first-number-1"
"""Name of these rules; another one where they change."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def first_number(answer: str) -> float | None:
    """Return the first number of a text; None where it has none, or one too large for a float.

    >>> first_number("The Answer is 2.0."), first_number("4 out of 5"), first_number("four")
    (2.0, 4.0, None)
    """
    found = NUMBER.search(answer)
    value = float(found[0]) if found else math.inf
    return value if math.isfinite(value) else None


def after_words(answer: str) -> bool:
    """Tell whether the first number of a text stands after a letter.

    >>> after_words("Sentence 1 is about dogs"), after_words(" **4** of 5"), after_words("four")
    (True, False, False)
    """
    found = NUMBER.search(answer)
    return found is not None and any(sign.isalpha() for sign in answer[: found.start()])
