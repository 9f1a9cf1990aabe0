"""Prompts of the papers for conditions, as text files.

====================  =====================================================================================
``short-1``           instruction of C-STS Figure 5 (and of L-CSTS Figure 8)
``long-1``            instruction of C-STS Figure 6
``query-1``           question of both figures, and an example before its label
``answers-short-1``   instruction of L-CSTS Figure 9: ``short-1`` about answers
``answers-query-1``   its question: ``query-1`` about answers
``question-1``        L-CSTS Figure 7, with its "Your should"
``sts-short-1``       ``short-1`` without the condition, scores from 0 to 5 (STS Benchmark, Table 12)
``sts-long-1``        ``long-1`` with the scale of the STS Benchmark (Cer et al. 2017, Table 1)
``sts-query-1``       ``query-1`` without the condition
====================  =====================================================================================

The line breaks in the figures of C-STS are inconsistent: of the two examples of Figure 5, one has its
condition on a separate line, the other on that of sentence 2. Here, an instruction, an example and the
question are one line each, as in the authors' program (github.com/princeton-nlp/c-sts). That program has no
space before a label for T5 and two after each "Sentence 1:" for GPT; here there is always one space, as
printed. L-CSTS adopts that prompt, so Figure 9 has the form of ``query-1``; the lines of Figure 7 are
unchanged. C-STS prints no prompts for the STS Benchmark; those of ``sts-`` follow from its figures.

Released files never change: a new wording is a new file with a new number.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["NAMES", "Text", "text"]

NAMES = (
    "short-1",
    "long-1",
    "query-1",
    "answers-short-1",
    "answers-query-1",
    "question-1",
    "sts-short-1",
    "sts-long-1",
    "sts-query-1",
)


@dataclass(frozen=True, slots=True)
class Text:
    """A part of a prompt, with fields in braces."""

    name: str
    form: str

    @property
    def document(self) -> dict[str, str]:
        """Name and SHA-256 for a signature."""
        return {"name": self.name, "sha256": hashlib.sha256(self.form.encode("utf-8")).hexdigest()}

    def fill(self, **fields: str) -> str:
        """Return the text with its fields replaced, without surrounding white space.

        >>> text("question-1").fill(sentence="A red kite. ", question="What is the color?").split("\\n")[1:]
        ['Sentence: A red kite.', 'Question: What is the color?', 'Answer:']
        """
        return self.form.format_map({name: value.strip() for name, value in fields.items()})


@cache
def text(name: str) -> Text:
    """Return the text with this name, without the final line break of its file."""
    form = resources.files("giccs.csts.prompts").joinpath(f"{name}.txt").read_text("utf-8")
    return Text(name, form.replace("\r\n", "\n").removesuffix("\n"))
