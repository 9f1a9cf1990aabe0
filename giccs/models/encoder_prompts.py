"""Prompts of encoders: texts put before each text of a pair, such as ``query: `` and ``passage: `` of E5.

A prompt is written in one of these forms; ``||`` separates the prompts of the target (the last turn) and the
candidate.

    NAME             a prompt of the model itself, by its name (``prompts`` of sentence-transformers)
    NAME||NAME       two of them
    NAME=TEXT        another text, under a name for tables
    NAME=TEXT||TEXT  two texts, one of which may be empty
    none             no prompt, also instead of the model's default; also as one of two names
    default          the model's default prompt, as without the option
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from bws.problems import InputError, Problem, suggestion
from giccs.models.abilities import SidedModel

__all__ = [
    "EXPECTED_PROMPT",
    "NO_PROMPT",
    "PROMPT_PATTERN",
    "EncoderPrompt",
    "check_symmetric",
    "resolve_prompt",
]

SEPARATOR = "||"
_TEXT = r"(?:(?!\|\|).)*"
PROMPT_PATTERN = (
    r"[^=|]+(?:\|\|[^=|]+)?|"
    r"(?!(?:none|default)=)[\w.-]+=(?!(?:\|\|)?$)" + _TEXT + r"(?:\|\|" + _TEXT + ")?"
)
EXPECTED_PROMPT = (
    "NAME, NAME||NAME, NAME=TEXT or NAME=TEXT||TEXT, with NAME other than none= and default="
)


@dataclass(frozen=True, slots=True)
class EncoderPrompt:
    """Texts put before targets and candidates."""

    name: str
    """Name in tables."""
    target: str
    candidate: str

    @property
    def is_symmetric(self) -> bool:
        """Whether both sides have the same prompt."""
        return self.target == self.candidate

    def identity(self) -> dict[str, dict[str, str]]:
        """Return the entry of the signature; results without a prompt have none.

        >>> NO_PROMPT.identity()
        {}
        """
        return {} if self == NO_PROMPT else {"prompt": asdict(self)}


NO_PROMPT = EncoderPrompt("", "", "")
"""The prompt of models that have no default prompt."""


def after_prompt(prompt: str, text: str | tuple[str, str]) -> str | tuple[str, str]:
    """Return a text, or a pair of texts encoded as one input, after a prompt.

    >>> after_prompt("query: ", "a"), after_prompt("query: ", ("a", "b"))
    ('query: a', ('query: a', 'b'))
    """
    return f"{prompt}{text}" if isinstance(text, str) else (f"{prompt}{text[0]}", text[1])


def check_symmetric(model: SidedModel) -> None:
    """Raise InputError for a model with different prompts for targets and candidates."""
    if not model.is_symmetric():
        message = (
            "has a prompt for targets and another for candidates; expected one prompt for all texts"
        )
        raise InputError(Problem(model.name, None, message))


def resolve_prompt(
    model: str, prompt: str, own: Mapping[str, str | None], default: str | None = None
) -> EncoderPrompt:
    """Return the texts of a prompt in one of the forms of this module.

    model: name of the model, for messages. own, default: the prompts of the model itself, and the name of its
    default prompt, if any. Raises InputError for an unknown name, and ValueError for another form.

    >>> resolve_prompt("m", "query||passage", {"query": "query: ", "passage": "passage: "})
    EncoderPrompt(name='query||passage', target='query: ', candidate='passage: ')
    >>> resolve_prompt("m", "sts=Find a paraphrase: ", {})
    EncoderPrompt(name='sts', target='Find a paraphrase: ', candidate='Find a paraphrase: ')
    >>> resolve_prompt("m", "none", {}, default=None) == NO_PROMPT
    True
    """
    name, is_text, text = prompt.partition("=")
    if is_text:
        target, is_two, candidate = text.partition(SEPARATOR)
        return EncoderPrompt(name, target, candidate if is_two else target)
    if prompt == "default":
        prompt = default or "none"
    if prompt == "none":
        return EncoderPrompt("none", "", "") if default else NO_PROMPT
    target, _, candidate = prompt.partition(SEPARATOR)
    texts = [_own_text(model, side, own) for side in (target, candidate or target)]
    return EncoderPrompt(prompt, *texts)


def _own_text(model: str, name: str, own: Mapping[str, str | None]) -> str:
    if name == "none":
        return ""
    if name in own:
        return own[name] or ""
    known = f"expected {', '.join([*own, 'none'])}" if own else "the model has none; expected none"
    message = f"has no prompt {name!r}{suggestion(name, own)}; {known} or NAME=TEXT"
    raise InputError(Problem(model, None, message))
