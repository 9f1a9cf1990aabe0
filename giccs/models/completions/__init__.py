"""Models behind a server's ``/v1/completions``: how likely is each option to follow its prompt?

request     a text -> what is sent, and the name under which its answer is kept
tokens      the answer -> the text's tokens and how likely each is, or why that cannot be known
scoring     tokens of a prompt and of the same with its options -> how likely each option is
model       all of it behind one call
"""

from __future__ import annotations

from giccs.models.completions.model import CompletionsModel, open_completions

__all__ = ["CompletionsModel", "open_completions"]
