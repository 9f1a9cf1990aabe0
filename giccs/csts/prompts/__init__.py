"""What exactly is a model asked about sentences and conditions? The papers' prompts, as text files.

====================  =====================================================================================
``short-1``           instruction of C-STS Figure 5 (and of L-CSTS Figure 8)
``long-1``            instruction of C-STS Figure 6
``query-1``           how both figures put a question, and an example before its label
``answers-short-1``   instruction of L-CSTS Figure 9: ``short-1`` about answers
``answers-query-1``   its question: ``query-1`` about answers
``question-1``        L-CSTS Figure 7, with its "Your should"
====================  =====================================================================================

The figures of C-STS are set in lines for the eye, and not all alike: of the two examples of Figure 5 one has
its condition on a line of its own, the other on that of sentence 2. Here an instruction, an example and the
question are one line each, as in the authors' program (github.com/princeton-nlp/c-sts), which leaves no space
before a label for T5 and two after each "Sentence 1:" for GPT; here it is one space everywhere, as printed.
L-CSTS adopts that prompt, so that Figure 9 has the form of ``query-1``; Figure 7 is taken line by line.

A file is never changed once it has shipped: a new wording is a new file with a new number.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["NAMES", "Text", "text"]

NAMES = ("short-1", "long-1", "query-1", "answers-short-1", "answers-query-1", "question-1")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a prompt, with its fields in braces."""

    name: str
    form: str

    @property
    def document(self) -> dict[str, str]:
        """What a signature says of it: name and SHA-256."""
        return {"name": self.name, "sha256": hashlib.sha256(self.form.encode("utf-8")).hexdigest()}

    def fill(self, **fields: str) -> str:
        """Return the text with its fields filled in, without white space around them.

        >>> text("question-1").fill(sentence="A red kite. ", question="What is the color?").split("\\n")[1:]
        ['Sentence: A red kite.', 'Question: What is the color?', 'Answer:']
        """
        return self.form.format_map({name: value.strip() for name, value in fields.items()})


@cache
def text(name: str) -> Text:
    """Return the text of this name; the line break that ends its file is not part of it."""
    form = resources.files("giccs.csts.prompts").joinpath(f"{name}.txt").read_text("utf-8")
    return Text(name, form.replace("\r\n", "\n").removesuffix("\n"))
